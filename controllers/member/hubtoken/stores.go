package hubtoken

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// SecretKey is the key of the token in its Secret, as KubeFleet's documentation makes it.
const SecretKey = "token"

var errChanged = errors.New("another token was put there meanwhile, which stays")

// Secret is a Secret of the member with the token.
type Secret struct {
	Secrets corev1client.SecretInterface
	Name    string
}

// Load reads the Secret.
func (s *Secret) Load(ctx context.Context) (string, error) {
	secret, err := s.Secrets.Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the token for the hub: %w", err)
	}
	token := strings.TrimSpace(string(secret.Data[SecretKey]))
	if token == "" {
		return "", fmt.Errorf("the Secret %s/%s has no entry %q with the token for the hub", secret.Namespace, secret.Name, SecretKey)
	}
	return token, nil
}

// Replace writes the Secret, unless it was written since it was read: joining again puts a token there that must not get lost.
func (s *Secret) Replace(ctx context.Context, old, token string) error {
	secret, err := s.Secrets.Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the Secret with the token for the hub: %w", err)
	}
	if strings.TrimSpace(string(secret.Data[SecretKey])) != old {
		return fmt.Errorf("writing Secret %s: %w", s.Name, errChanged)
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": secret.ResourceVersion},
		"data":     map[string][]byte{SecretKey: []byte(token)},
	})
	if err != nil {
		return fmt.Errorf("encoding Secret %s: %w", s.Name, err)
	}
	if _, err := s.Secrets.Patch(ctx, s.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "member-agent"}); err != nil {
		return fmt.Errorf("writing the renewed token to Secret %s of this cluster: %w", s.Name, err)
	}
	return nil
}

// File is a file with the token.
type File string

// Load reads the file.
func (f File) Load(context.Context) (string, error) {
	content, err := os.ReadFile(string(f))
	if err != nil {
		return "", fmt.Errorf("reading the token for the hub: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// Replace writes the file as a whole: a reader sees the old token or the new one.
func (f File) Replace(ctx context.Context, old, token string) error {
	if now, err := f.Load(ctx); err != nil || now != old {
		return errors.Join(fmt.Errorf("writing %s: %w", f, errChanged), err)
	}
	fresh, err := os.CreateTemp(filepath.Dir(string(f)), ".token-")
	if err != nil {
		return fmt.Errorf("writing the renewed token beside %s: %w", f, err)
	}
	_, err = fresh.WriteString(token)
	if err = errors.Join(err, fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), string(f))
	}
	if err != nil {
		return fmt.Errorf("writing the renewed token to %s: %w", f, errors.Join(err, os.Remove(fresh.Name())))
	}
	return nil
}

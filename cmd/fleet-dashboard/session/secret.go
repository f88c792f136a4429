package session

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretPatience is how long the hub may take for an answer about the Secret: requests of users wait for it.
const secretPatience = 3 * time.Second

// Secret keeps the keys in a Secret of the hub. The chart creates it without a key, as RBAC cannot allow the creation of one name
// only. The first replica that finds no key adds one.
type Secret struct {
	Client          client.Client
	Namespace, Name string
}

// read returns the entries of the Secret, with a key. Replicas that find none at the same time agree on the key of the first that
// writes: the others read again.
func (s *Secret) read() (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), secretPatience)
	defer cancel()
	secret := &corev1.Secret{}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, secret); err != nil {
			return err
		}
		if len(secret.Data[keyFile]) > 0 {
			return nil
		}
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[keyFile] = []byte(random())
		return s.Client.Update(ctx, secret) // refused if another one wrote since
	})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Secret %s/%s for the key of sessions: the chart makes it without a key", s.Namespace, s.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key of sessions in Secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	return secret.Data, nil
}

package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// keyFile has the key that seals, previousKeyFile the one that sealed before and still opens.
	keyFile, previousKeyFile = "key", "previous"
	// minKey is how long a key has to be, in characters.
	minKey = 32
	// keysLast is how long keys count before their files are read again.
	keysLast = time.Minute
)

// ErrNotSealed means that something was not sealed here, or was changed since.
var ErrNotSealed = errors.New("not sealed by this dashboard")

// Sealer seals what a browser keeps, so that it can neither read nor change it.
type Sealer struct {
	// Folder has the keys, in files key and previous, as a Secret is mounted.
	Folder string
	// Secret has them on the hub, instead of Folder.
	Secret *Secret
	Clock  clock.PassiveClock

	mutex sync.Mutex
	keys  []cipher.AEAD
	read  time.Time
}

// Check reads the keys, and says what is wrong with them.
func (s *Sealer) Check() error {
	_, err := s.current()
	return err
}

// current returns the keys, of which the first seals.
func (s *Sealer) current() ([]cipher.AEAD, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.keys) > 0 && s.Clock.Since(s.read) < keysLast {
		return s.keys, nil
	}
	keys, err := s.load()
	if err != nil && len(s.keys) == 0 {
		return nil, err
	}
	if err == nil { // else those that were good a minute ago
		s.keys = keys
	}
	s.read = s.Clock.Now()
	return s.keys, nil
}

// load reads the keys from where they are.
func (s *Sealer) load() ([]cipher.AEAD, error) {
	if s.Secret != nil {
		entries, err := s.Secret.read()
		if err != nil {
			return nil, err
		}
		return ciphers(entries, fmt.Sprintf("Secret %s/%s", s.Secret.Namespace, s.Secret.Name))
	}
	entries := map[string][]byte{}
	for _, name := range []string{keyFile, previousKeyFile} {
		content, err := os.ReadFile(filepath.Join(s.Folder, name))
		if errors.Is(err, fs.ErrNotExist) && name == previousKeyFile {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the key of sessions: %w", err)
		}
		entries[name] = content
	}
	return ciphers(entries, s.Folder)
}

// ciphers makes a cipher of each key, in the order in which they count.
func ciphers(entries map[string][]byte, from string) ([]cipher.AEAD, error) {
	var keys []cipher.AEAD
	for _, name := range []string{keyFile, previousKeyFile} {
		text := strings.TrimSpace(string(entries[name]))
		if text == "" && name == previousKeyFile {
			continue
		}
		if len(text) < minKey {
			return nil, fmt.Errorf("the key of sessions, %s in %s, has %d characters; it needs %d or more that are random", name, from,
				len(text), minKey)
		}
		sum := sha256.Sum256([]byte(text))
		block, err := aes.NewCipher(sum[:])
		if err != nil {
			return nil, fmt.Errorf("making the cipher of sessions: %w", err)
		}
		key, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("making the cipher of sessions: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Seal seals a value for a purpose, as text for a cookie.
func (s *Sealer) Seal(purpose string, value any) (string, error) {
	keys, err := s.current()
	if err != nil {
		return "", err
	}
	plain, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("sealing: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(keys[0].Seal(nil, nil, plain, []byte(purpose))), nil
}

// Unseal reads what was sealed for the same purpose; ErrNotSealed if it was not.
func (s *Sealer) Unseal(purpose, text string, into any) error {
	keys, err := s.current()
	if err != nil {
		return err
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text) // one text for the same bytes
	if err != nil {
		return ErrNotSealed
	}
	for _, key := range keys {
		plain, err := key.Open(nil, nil, sealed, []byte(purpose))
		if err != nil {
			continue
		}
		if err := json.Unmarshal(plain, into); err != nil {
			return ErrNotSealed
		}
		return nil
	}
	return ErrNotSealed
}

// random returns a text that cannot be guessed.
func random() string {
	content := make([]byte, tokenBytes)
	_, _ = rand.Read(content) // it never fails
	return base64.RawURLEncoding.EncodeToString(content)
}

//go:build integration

package charts

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// provider stands in for an identity provider that has a user logged in, and lets that user in without a question.
type provider struct {
	*httptest.Server
	key *rsa.PrivateKey

	mutex  sync.Mutex
	claims map[string]any
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	const bits = 2048
	key, err := rsa.GenerateKey(rand.Reader, bits)
	require.NoError(t, err)
	p := &provider{key: key}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes())}}})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.claims["nonce"] = r.FormValue("nonce")
		http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+url.Values{"state": {r.FormValue("state")}, "code": {"code"}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"access_token": "unused", "token_type": "Bearer", "id_token": p.token(t)})
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func encode(content []byte) string { return base64.RawURLEncoding.EncodeToString(content) }

// token signs the claims.
func (p *provider) token(t *testing.T) string {
	t.Helper()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	head, err := json.Marshal(map[string]any{"alg": "RS256", "kid": "1"})
	require.NoError(t, err)
	claims, err := json.Marshal(p.claims)
	require.NoError(t, err)
	text := encode(head) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	require.NoError(t, err)
	return text + "." + encode(signature)
}

// has has a user logged in at the provider.
func (p *provider) has(name string, groups ...string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.claims = map[string]any{"iss": p.URL, "aud": "fleet", "sub": name, "email": name, "groups": groups, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
}

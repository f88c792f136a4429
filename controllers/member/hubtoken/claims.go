package hubtoken

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// minLifetime is the shortest that an API server gives a token.
const minLifetime = 10 * time.Minute

// claims are what the token of a service account says of itself. Only the hub can tell whether it is true.
type claims struct {
	namespace, account string
	issued, expires    time.Time
}

// readClaims reads a token. It is not renewable if it does not end, or is not that of a service account.
func readClaims(token string) (c claims, renewable bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}, false
	}
	var said struct {
		Subject string `json:"sub"`
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
	}
	if json.Unmarshal(payload, &said) != nil || said.Expires == 0 || said.Issued >= said.Expires {
		return claims{}, false
	}
	account, found := strings.CutPrefix(said.Subject, "system:serviceaccount:")
	c = claims{issued: time.Unix(said.Issued, 0), expires: time.Unix(said.Expires, 0)}
	c.namespace, c.account, renewable = strings.Cut(account, ":")
	return c, found && renewable
}

// tokenLifetime returns how long the token holds, and its successor is to hold.
func (c claims) tokenLifetime() time.Duration { return max(c.expires.Sub(c.issued), minLifetime) }

// renewalTime returns when the token is to be renewed: after this part of its life.
func (c claims) renewalTime(share float64) time.Time {
	return c.issued.Add(time.Duration(float64(c.expires.Sub(c.issued)) * share))
}

package session

import "time"

// Identity is a user, as a cookie keeps it.
type Identity struct {
	// ID tells sessions of one user apart, which may end at the same time.
	ID      string   `json:"id,omitempty"`
	Issuer  string   `json:"iss,omitempty"`
	Subject string   `json:"sub,omitempty"`
	User    string   `json:"user"`
	Groups  []string `json:"groups,omitempty"`
	// Token is a bearer token that the user has given; empty for users whom an identity provider names.
	Token string `json:"token,omitempty"`
	// Expires is when the session ends.
	Expires time.Time `json:"exp"`
}

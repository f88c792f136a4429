package session

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"k8s.io/utils/clock"
)

const (
	// loginLasts is how long a user may take to log in at the identity provider.
	loginLasts = 10 * time.Minute
	// maxGroups is how many groups of a user are kept.
	maxGroups = 100
	// noPrefix is what the API server's flag calls a prefix that is left out, as without it names begin with the issuer.
	noPrefix = "-"
	// emailClaim is the one claim whose users have no prefix unless one is asked for, and have to be verified.
	emailClaim = "email"
)

// Provider is an OpenID Connect provider that users log in at. Claims become users and groups by the same settings as those
// of the API server's own flags --oidc-*, so that both know a user by the same name.
type Provider struct {
	Issuer, ClientID, ClientSecret string
	// Redirect is where the provider sends users back to.
	Redirect                      string
	UsernameClaim, UsernamePrefix string
	GroupsClaim, GroupsPrefix     string
	// Keep are patterns, as those of a shell, of the groups that are kept; all if it is empty.
	Keep   []string
	Scopes []string
	// Lasts is how long a session may last; it ends with the ID token if that is sooner.
	Lasts time.Duration
	// HTTP reaches the provider.
	HTTP   *http.Client
	Clock  clock.PassiveClock
	Sealer *Sealer

	mutex    sync.Mutex
	provider *oidc.Provider
}

// pending is a login under way, as a cookie keeps it.
type pending struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Next     string    `json:"next"`
	Silent   bool      `json:"silent,omitempty"`
	Expires  time.Time `json:"exp"`
}

var (
	// ErrNotSilent means that the provider has to ask the user.
	ErrNotSilent = errors.New("the identity provider has to ask the user")
	// ErrLogin means that a login was not begun here, was changed on its way, or took too long.
	ErrLogin = errors.New("this login was not begun in this browser, or took too long")
)

// RefusedLogin is why the provider, or what it says of the user, does not let the user in.
type RefusedLogin struct{ Why string }

func (r *RefusedLogin) Error() string { return r.Why }

// discovered asks the provider what it offers, once it answers.
func (p *Provider) discovered() (*oidc.Provider, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.provider != nil {
		return p.provider, nil
	}
	// Not that of a request: the provider fetches its keys with it for as long as the process lives.
	found, err := oidc.NewProvider(oidc.ClientContext(context.Background(), p.HTTP), p.Issuer)
	if err != nil {
		return nil, fmt.Errorf("asking the identity provider %s what it offers: %w", p.Issuer, err)
	}
	p.provider = found
	return found, nil
}

func (p *Provider) config(provider *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: provider.Endpoint(), RedirectURL: p.Redirect,
		Scopes: append([]string{oidc.ScopeOpenID}, p.Scopes...),
	}
}

// Begin returns where to send a user who is to log in, and what a cookie is to keep until the user is back. Silent asks for
// an answer without a question to the user.
func (p *Provider) Begin(next string, silent bool) (to, name, sealed string, err error) {
	provider, err := p.discovered()
	if err != nil {
		return "", "", "", err
	}
	login := pending{State: random(), Nonce: random(), Verifier: oauth2.GenerateVerifier(), Next: OwnPath(next), Silent: silent,
		Expires: p.Clock.Now().Add(loginLasts)}
	sealed, err = p.Sealer.Seal(loginPurpose, login)
	options := []oauth2.AuthCodeOption{oidc.Nonce(login.Nonce), oauth2.S256ChallengeOption(login.Verifier)}
	if silent {
		options = append(options, oauth2.SetAuthURLParam("prompt", "none"))
	}
	return p.config(provider).AuthCodeURL(login.State, options...), loginName(login.State), sealed, err
}

// loginPurpose and sessionPurpose keep a cookie from being taken for the other.
const loginPurpose, sessionPurpose = "login", "session"

// loginName has a part of the state in it, so that logins in several tabs do not end each other.
func loginName(state string) string {
	const enough = 8
	return "fleet-login-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '0'
	}, state[:min(enough, len(state))])
}

// Finish takes a user who comes back from the provider: who it is, where the user wanted to go, and the cookie that is spent.
// The errors are ErrLogin, ErrNotSilent, RefusedLogin, or what went wrong.
func (p *Provider) Finish(r *http.Request, cookie func(name string) string) (user Identity, next, spent string, err error) {
	query := r.URL.Query()
	name := loginName(query.Get("state"))
	login := pending{}
	if err := p.Sealer.Unseal(loginPurpose, cookie(name), &login); err != nil {
		return Identity{}, "/", name, ErrLogin
	}
	if subtle.ConstantTimeCompare([]byte(login.State), []byte(query.Get("state"))) != 1 || p.Clock.Now().After(login.Expires) {
		return Identity{}, "/", name, ErrLogin
	}
	if code := query.Get("error"); code != "" {
		return Identity{}, login.Next, name, refusalOf(code, query, login.Silent)
	}
	user, err = p.exchange(r.Context(), query.Get("code"), login)
	return user, login.Next, name, err
}

// refusalOf is what the provider's answer means that has no code in it.
func refusalOf(code string, query url.Values, silent bool) error {
	asks := []string{"login_required", "interaction_required", "consent_required", "account_selection_required"}
	if silent && slices.Contains(asks, code) {
		return ErrNotSilent
	}
	why := "The identity provider does not let you in: " + code
	if more := query.Get("error_description"); more != "" {
		why += " (" + more + ")"
	}
	return &RefusedLogin{why + "."}
}

// exchange trades a code for an ID token. No other token is kept, and none to renew it is asked for.
func (p *Provider) exchange(ctx context.Context, code string, login pending) (Identity, error) {
	provider, err := p.discovered()
	if err != nil {
		return Identity{}, err
	}
	ctx = oidc.ClientContext(ctx, p.HTTP)
	tokens, err := p.config(provider).Exchange(ctx, code, oauth2.VerifierOption(login.Verifier))
	if err != nil {
		// The error has the provider's answer in it, which may be what not to show.
		return Identity{}, &RefusedLogin{"The identity provider does not take back what it has given for this login: log in again."}
	}
	raw, is := tokens.Extra("id_token").(string)
	if !is {
		return Identity{}, &RefusedLogin{"The identity provider has sent no ID token: it is asked for with the scope openid."}
	}
	verifier := provider.VerifierContext(ctx, &oidc.Config{ClientID: p.ClientID, Now: p.Clock.Now})
	token, err := verifier.Verify(ctx, raw)
	if err != nil {
		return Identity{}, fmt.Errorf("checking the ID token: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(login.Nonce)) != 1 {
		return Identity{}, ErrLogin
	}
	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return Identity{}, fmt.Errorf("reading the ID token: %w", err)
	}
	user, err := p.identity(claims)
	if err != nil {
		return Identity{}, err
	}
	user.Issuer = token.Issuer
	user.Subject = token.Subject
	user.Expires = p.Clock.Now().Add(p.Lasts)
	if token.Expiry.Before(user.Expires) {
		user.Expires = token.Expiry
	}
	return user, nil
}

// identity returns the user that claims are about.
func (p *Provider) identity(claims map[string]any) (Identity, error) {
	name, _ := claims[p.UsernameClaim].(string)
	if name == "" {
		return Identity{}, &RefusedLogin{fmt.Sprintf("The ID token has no claim %q, which is to name the user.", p.UsernameClaim)}
	}
	if verified, told := claims["email_verified"]; p.UsernameClaim == emailClaim && told && verified != true {
		return Identity{}, &RefusedLogin{"The identity provider has not verified your email address."}
	}
	prefix := p.UsernamePrefix
	switch {
	case prefix == noPrefix || prefix == "" && p.UsernameClaim == emailClaim:
		prefix = ""
	case prefix == "":
		prefix = p.Issuer + "#"
	}
	user := Identity{User: prefix + name}
	for _, group := range groupsOf(claims[p.GroupsClaim]) {
		group = p.GroupsPrefix + group
		if kept(group, p.Keep) && !slices.Contains(user.Groups, group) {
			user.Groups = append(user.Groups, group)
		}
	}
	if len(user.Groups) > maxGroups {
		return Identity{}, &RefusedLogin{fmt.Sprintf("You are in %d groups that the dashboard keeps, and it keeps at most %d: narrow --oidc-keep-groups (oidc.keepGroups of the chart).", len(user.Groups), maxGroups)}
	}
	return user, nil
}

// groupsOf returns the groups in a claim, which is a list or, for one, a text.
func groupsOf(claim any) []string {
	switch value := claim.(type) {
	case string:
		return []string{value}
	case []any:
		var groups []string
		for _, one := range value {
			if group, is := one.(string); is {
				groups = append(groups, group)
			}
		}
		return groups
	}
	return nil
}

func kept(group string, patterns []string) bool {
	if group == "" {
		return false
	}
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		matches, err := path.Match(pattern, group)
		return err == nil && matches
	})
}

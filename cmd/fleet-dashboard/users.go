package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/login"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/reading"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/session"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/web"
	"github.com/fleetflow/fleetflow/cmd/internal/patience"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// providerPatience is how long the identity provider may take for an answer.
const providerPatience = 15 * time.Second

// users makes what acts as users.
type users struct {
	// config and client are those of the dashboard's own account.
	config   *rest.Config
	client   client.WithWatch
	discover *discovery.DiscoveryClient
	clock    clock.WithTicker
	lasts    time.Duration
	// patience is for how long pages wait for answers of the hub.
	patience *patience.Patience
}

func newUsers(o *options, clock clock.WithTicker) (*users, error) {
	config, err := o.hubConfig()
	if err != nil {
		return nil, err
	}
	bounds := &patience.Patience{Reads: patience.Reads, Writes: patience.Writes, Now: clock.Now}
	config = bounds.Wrap(config)
	own, err := client.NewWithWatch(config, client.Options{Scheme: cli.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	return &users{config, own, discover, clock, o.sessionLasts, bounds}, nil
}

// act makes what reads and writes as a user: with the token that the user has given, or else by impersonation.
func (u *users) act(user session.Identity) (*web.Person, error) {
	config := u.bearer(user.Token)
	if user.Token == "" {
		var err error
		if config, err = as.User(u.config, user.User, user.Groups); err != nil {
			return nil, err
		}
	}
	// Which kinds there are is not the user's to find out.
	c, err := client.NewWithWatch(config, client.Options{Scheme: cli.Scheme(), Mapper: u.client.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub as %s: %w", user.User, err)
	}
	reads := &reading.Hub{Client: c, Clock: u.clock, Discover: u.discovered}
	reviewer := &as.Reviewer{Client: u.client, Clock: u.clock, User: user.User, Groups: user.Groups}
	return &web.Person{Name: user.User, Groups: user.Groups, Reviewer: reviewer, Writes: c, Reading: reads, Filtered: true}, nil
}

// bearer returns the configuration that acts with a token, and keeps nothing of that of the dashboard but how long it waits.
func (u *users) bearer(token string) *rest.Config { return u.patience.Wrap(as.Bearer(u.config, token)) }

// discovered returns the kinds that the hub serves; a group whose server is away does not keep the others from being seen.
func (u *users) discovered() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, lists, err := u.discover.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, nil, fmt.Errorf("asking the hub for the kinds it serves: %w", err)
	}
	return groups, lists, nil
}

// tokenOf asks the hub who a token is of.
func (u *users) tokenOf(ctx context.Context, token string) (session.Identity, error) {
	c, err := client.New(u.bearer(token), client.Options{Scheme: cli.Scheme(), Mapper: u.client.RESTMapper()})
	if err != nil {
		return session.Identity{}, fmt.Errorf("connecting to the hub: %w", err)
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return session.Identity{}, fmt.Errorf("asking the hub who the token is of: %w", err)
	}
	who := review.Status.UserInfo
	if who.Username == "" || who.Username == "system:anonymous" {
		return session.Identity{}, errors.New("the hub does not know whose the token is")
	}
	user := session.Identity{User: who.Username, Groups: who.Groups, Token: token, Expires: u.clock.Now().Add(u.lasts)}
	if expiry := expiryOf(token); !expiry.IsZero() && expiry.Before(user.Expires) {
		user.Expires = expiry
	}
	return user, nil
}

// expiryOf returns when a token ends, if it is a JWT that says so; the hub has checked it.
func expiryOf(token string) time.Time {
	parts := strings.Split(token, ".")
	const partsOfJWT = 3
	if len(parts) != partsOfJWT {
		return time.Time{}
	}
	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	claims := struct {
		Expires int64 `json:"exp"`
	}{}
	if err != nil || json.Unmarshal(content, &claims) != nil || claims.Expires == 0 {
		return time.Time{}
	}
	return time.Unix(claims.Expires, 0)
}

// newSealer returns what seals sessions, with the keys of a folder, which have to be there, or of a Secret on the hub.
func newSealer(o *options, users *users) (*session.Sealer, error) {
	sealer := &session.Sealer{Folder: o.sessionKeys, Clock: users.clock}
	if o.sessionSecret != "" {
		namespace, name, err := cache.SplitMetaNamespaceKey(o.sessionSecret)
		sealer.Secret = &session.Secret{Client: users.client, Namespace: namespace, Name: name}
		return sealer, err // the hub may be away
	}
	if o.anonymous != "" {
		return sealer, nil
	}
	return sealer, sealer.Check()
}

// newAccess returns how users are let in.
func newAccess(o *options, users *users, sealer *session.Sealer, log logr.Logger) (web.Access, error) {
	if o.anonymous != "" {
		person, err := users.act(session.Identity{User: o.anonymous})
		if err != nil {
			return nil, err
		}
		person.Writes = nil
		return &login.Anyone{Person: person, Host: hostOf(o)}, nil
	}
	access := &login.SignedIn{
		Cookies: &session.Cookies{Sealer: sealer, Insecure: o.url.Scheme == "http"}, Act: users.act, Host: hostOf(o), Clock: users.clock,
		Log: func(format string, args ...any) { log.Info(fmt.Sprintf(format, args...)) },
	}
	if o.tokens {
		access.Tokens = users.tokenOf
	}
	if o.issuer != "" {
		var err error
		if access.Provider, err = newProvider(o, users.clock, sealer); err != nil {
			return nil, err
		}
	}
	return access, nil
}

func newProvider(o *options, clock clock.PassiveClock, sealer *session.Sealer) (*session.Provider, error) {
	secret, err := o.clientSecret()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if o.caFile != "" {
		content, err := os.ReadFile(o.caFile)
		if err != nil {
			return nil, fmt.Errorf("reading --oidc-ca-file: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("--oidc-ca-file %s has no certificate", o.caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &session.Provider{
		Issuer: o.issuer, ClientID: o.clientID, ClientSecret: secret, Redirect: strings.TrimSuffix(o.url.String(), "/") + login.CallbackPath,
		UsernameClaim: o.usernameClaim, UsernamePrefix: o.usernamePrefix, GroupsClaim: o.groupsClaim, GroupsPrefix: o.groupsPrefix,
		Keep: o.keepGroups, Scopes: o.scopes, Lasts: o.sessionLasts, HTTP: &http.Client{Transport: transport, Timeout: providerPatience},
		Clock: clock, Sealer: sealer,
	}, nil
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
)

// maxSession is the longest that a session may last: until then a user keeps groups that the provider has taken away.
const maxSession = 12 * time.Hour

type options struct {
	version    bool
	try        string
	logFormat  string
	verbosity  int
	kubeconfig string
	qps        float64
	burst      int
	namespace  string
	hubName    string
	temporal   string

	address, healthAddress string
	// url is how browsers know the dashboard.
	url             *url.URL
	tlsCert, tlsKey string
	insecureCookies bool
	sessionKeys     string
	// sessionSecret is <namespace>/<name> of a Secret, instead of the folder sessionKeys.
	sessionSecret      string
	sessionLasts       time.Duration
	tokens             bool
	anonymous          string
	issuer, clientID   string
	secretFile, caFile string
	scopes, keepGroups list
	usernameClaim      string
	usernamePrefix     string
	groupsClaim        string
	groupsPrefix       string
}

// list is a flag of texts that are separated by commas.
type list []string

// String returns the list as it is given.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set takes the list.
func (l *list) Set(text string) error {
	*l = nil
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			*l = append(*l, one)
		}
	}
	return nil
}

// parseOptions reads the flags; the error names what is wrong and what is allowed.
func parseOptions(args []string, out io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("fleet-dashboard", flag.ContinueOnError)
	f.SetOutput(out)
	f.Usage = func() {
		fmt.Fprint(out, `fleet-dashboard serves pages about a fleet to several users: it reads with an account of its own, and writes as the user.
For yourself alone, kubectl fleet dashboard needs no installation.

Users log in at an identity provider (--oidc-issuer-url), with a token (--allow-tokens), or not at all, to look only
(--anonymous-read-only).

`)
		f.PrintDefaults()
	}
	external := ""
	f.BoolVar(&o.version, "version", false, "print the version and end")
	f.StringVar(&o.try, "try", "", "ask the dashboard at this address for its first page and end, with 0 if it answers those who come by --url, as helm test does")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the hub; the Pod's service account is used if empty")
	f.Float64Var(&o.qps, "hub-api-qps", 100, "requests a second to the hub's API server")
	f.IntVar(&o.burst, "hub-api-burst", 200, "requests to the hub's API server that may come at once")
	f.StringVar(&o.namespace, "namespace", "", "show the placements and runs of this namespace only; all if empty")
	f.StringVar(&o.hubName, "hub-name", "hub", "what the pages call the hub")
	f.StringVar(&o.temporal, "temporal-ui", "", "the pages of Temporal for the namespace of the hub, to link runs to their workflows, such as https://temporal.example.com/namespaces/fleetflow")
	f.StringVar(&o.address, "bind-address", ":8080", "address of the pages")
	f.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "address of /healthz, /readyz and /metrics, which need no login")
	f.StringVar(&external, "url", "", "how browsers know the dashboard, such as https://fleet.example.com; requests to other hosts are refused. Required")
	f.StringVar(&o.tlsCert, "tls-cert-file", "", "certificate to serve by TLS; plain text, for an ingress that ends TLS, if empty")
	f.StringVar(&o.tlsKey, "tls-private-key-file", "", "key of the certificate")
	f.BoolVar(&o.insecureCookies, "insecure-cookies", false, "allow a --url of http, over which others on the way can take a session; for trials only")
	f.StringVar(&o.sessionKeys, "session-keys", "", "folder with the file key, of 32 random characters or more, that encrypts sessions, and, while it is replaced, the file previous. Required unless --session-secret or --anonymous-read-only is given")
	f.StringVar(&o.sessionSecret, "session-secret", "", "<namespace>/<name> of a Secret of the hub with the same entries, instead of --session-keys. It has to exist; without a key the dashboard puts one in, on which all its replicas agree")
	f.DurationVar(&o.sessionLasts, "session-duration", time.Hour,
		"how long a session lasts at most; it ends with the ID token if that is sooner, and is renewed without a question while the provider's own lasts")
	f.BoolVar(&o.tokens, "allow-tokens", false, "let users log in with a bearer token of the hub, which is kept encrypted in their cookie")
	f.StringVar(&o.anonymous, "anonymous-read-only", "", "let all clients in without a login, to look at what this user may see; nothing can be changed")
	f.StringVar(&o.issuer, "oidc-issuer-url", "", "the OpenID Connect provider that users log in at, as in the flag of the API server")
	f.StringVar(&o.clientID, "oidc-client-id", "", "the dashboard's ID at the provider, where <url>/oidc/callback is to be allowed as redirect")
	f.StringVar(&o.secretFile, "oidc-client-secret-file", "", "file with the secret of the client; none if empty, as PKCE protects the login")
	f.StringVar(&o.caFile, "oidc-ca-file", "", "CA of the provider; those of the system if empty")
	f.StringVar(&o.usernameClaim, "oidc-username-claim", "sub", "claim with the name of the user, as in the flag of the API server")
	f.StringVar(&o.usernamePrefix, "oidc-username-prefix", "", "prefix of the names of users on the hub, as in the flag of the API server; if empty, the issuer and #, or none where the claim is email; - is no prefix")
	f.StringVar(&o.groupsClaim, "oidc-groups-claim", "groups", "claim with the groups of the user")
	f.StringVar(&o.groupsPrefix, "oidc-groups-prefix", "", "prefix of the names of groups on the hub, as in the flag of the API server")
	f.Var(&o.keepGroups, "oidc-keep-groups", "patterns of groups, with their prefix, that are kept, separated by commas, such as fleet-*; all if empty")
	f.Var(&o.scopes, "oidc-scopes", "scopes to ask for beside openid, separated by commas, such as email,groups")
	f.StringVar(&o.logFormat, "log-format", jsonFormat, "json or console")
	f.IntVar(&o.verbosity, "v", 0, "verbosity of the log: 0 for what an operator needs, more for details")
	if err := f.Parse(args); err != nil || o.version {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag", f.Arg(0))
	}
	if o.try != "" {
		return o, o.checkURL(external)
	}
	return o, errors.Join(o.checkURL(external), o.checkAccess(), o.checkProvider(), o.checkLog())
}

func (o *options) checkURL(external string) error {
	parsed, err := url.Parse(external)
	switch {
	case external == "":
		return errors.New("--url is required: how browsers know the dashboard, such as https://fleet.example.com")
	case err != nil || parsed.Host == "" || strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "" || parsed.Scheme != "https" &&
		parsed.Scheme != "http":
		return fmt.Errorf("--url is %q; it must be a scheme and a host, such as https://fleet.example.com", external)
	case parsed.Scheme == "http" && !o.insecureCookies:
		return fmt.Errorf("--url is %q: over http others on the way can take a session; use https, or --insecure-cookies for a trial", external)
	case (o.tlsCert == "") != (o.tlsKey == ""):
		return errors.New("--tls-cert-file and --tls-private-key-file belong together")
	}
	o.url = parsed
	if temporal, err := url.Parse(o.temporal); o.temporal != "" && (err != nil || temporal.Scheme != "http" && temporal.Scheme != "https") {
		return fmt.Errorf("--temporal-ui is %q; it must be a URL such as https://temporal.example.com/namespaces/fleetflow", o.temporal)
	}
	return nil
}

// checkAccess refuses a dashboard that could write for users it does not know.
func (o *options) checkAccess() error {
	switch {
	case o.anonymous != "" && (o.issuer != "" || o.tokens):
		return errors.New("--anonymous-read-only lets all clients in without a login: leave out --oidc-issuer-url and --allow-tokens, or it")
	case o.anonymous != "":
		if err := as.Check(o.anonymous, nil); err != nil {
			return fmt.Errorf("--anonymous-read-only is %w: name a user that has a role such as hub-agent-viewer", err)
		}
		return nil
	case o.issuer == "" && !o.tokens:
		return errors.New("say how users log in: --oidc-issuer-url, --allow-tokens, or --anonymous-read-only for a dashboard to look at only")
	case (o.sessionKeys == "") == (o.sessionSecret == ""):
		return errors.New("one of --session-keys and --session-secret is required: a folder with the file key, or a Secret with the entry key, which encrypts sessions")
	case o.sessionSecret != "" && !namesOne(o.sessionSecret):
		return fmt.Errorf("--session-secret is %q; it must be <namespace>/<name>", o.sessionSecret)
	case o.sessionLasts <= 0 || o.sessionLasts > maxSession:
		return fmt.Errorf("--session-duration is %s; it must be more than 0 and at most %s", o.sessionLasts, maxSession)
	}
	return nil
}

// namesOne reports whether a text is <namespace>/<name>.
func namesOne(text string) bool {
	namespace, name, err := cache.SplitMetaNamespaceKey(text)
	return err == nil && namespace != "" && name != ""
}

func (o *options) checkProvider() error {
	if o.issuer == "" {
		return nil
	}
	issuer, err := url.Parse(o.issuer)
	if err != nil || issuer.Host == "" || issuer.Scheme != "https" && (issuer.Scheme != "http" || !o.insecureCookies) {
		return fmt.Errorf("--oidc-issuer-url is %q; it must be a URL of https, as the API server has it", o.issuer)
	}
	if o.clientID == "" {
		return errors.New("--oidc-client-id is required: the dashboard's ID at the provider")
	}
	for _, pattern := range o.keepGroups {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("--oidc-keep-groups has %q, which is no pattern such as fleet-*", pattern)
		}
	}
	return nil
}

// Formats of the log.
const (
	jsonFormat    = "json"
	consoleFormat = "console"
)

func (o *options) checkLog() error {
	if o.logFormat != jsonFormat && o.logFormat != consoleFormat {
		return fmt.Errorf("--log-format is %q; it must be %s or %s", o.logFormat, jsonFormat, consoleFormat)
	}
	return nil
}

// newLogger returns a logger that writes to out, one line for each message.
func (o *options) newLogger(out io.Writer) logr.Logger {
	settings := &slog.HandlerOptions{Level: slog.Level(-o.verbosity)}
	if o.logFormat == consoleFormat {
		return logr.FromSlogHandler(slog.NewTextHandler(out, settings))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(out, settings))
}

// hubConfig returns how the hub is reached with the account of the dashboard.
func (o *options) hubConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the hub: %w", err)
	}
	config.QPS = float32(o.qps)
	config.Burst = o.burst
	config.UserAgent = "fleet-dashboard"
	return config, nil
}

// clientSecret returns the secret of the client at the provider.
func (o *options) clientSecret() (string, error) {
	if o.secretFile == "" {
		return "", nil
	}
	content, err := os.ReadFile(o.secretFile)
	if err != nil {
		return "", fmt.Errorf("reading --oidc-client-secret-file: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

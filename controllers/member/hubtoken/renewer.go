package hubtoken

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

const (
	// minShare and maxShare bound the part of its life after which a token is renewed. Each agent draws its own, so that
	// those of a fleet that joined together do not all ask at the same time.
	minShare, maxShare = 0.5, 0.6
	// lookEvery is how often the token is read again: joining again puts another one there.
	lookEvery = time.Minute
	// firstRetry and lastRetry are the pauses after the first failure and after many.
	firstRetry, lastRetry = 5 * time.Second, 5 * time.Minute
	// stepTimeout bounds one read, one write and one question to the hub.
	stepTimeout = 30 * time.Second
)

// Store is where the member keeps its token.
type Store interface {
	// Load returns the token that is there.
	Load(ctx context.Context) (string, error)
	// Replace puts a token in the place of another. It fails if another one is there than that.
	Replace(ctx context.Context, old, token string) error
}

// Issuer asks the hub for a token of an account that holds so long.
type Issuer func(ctx context.Context, namespace, account string, lifetime time.Duration) (string, error)

// Renewer renews the token for the hub for as long as it runs.
type Renewer struct {
	store Store
	issue Issuer
	clock clock.Clock
	log   logr.Logger
	share float64

	// renewed is the token that this process got last, and when it is due by this cluster's clock, which may go wrong.
	renewed    string
	renewedDue time.Time
	renewedFor time.Time
	failures   int
	eternal    bool
	finding    atomic.Pointer[metav1.Condition]
	// asked is the time before which a token is too old; nil if only its end matters. held is what is known of the token.
	asked atomic.Pointer[time.Time]
	held  atomic.Pointer[heldToken]
	wakes chan struct{}
	// Changed is called when there is something else to be told than before. It is optional.
	Changed func()
}

// heldToken is the token that is there.
type heldToken struct {
	claims
	renewable bool
	// answers is the time of the request that it was got for; it counts where the clocks of who asks and of the hub differ.
	answers time.Time
}

// New returns a Renewer.
func New(store Store, issue Issuer, clock clock.Clock, log logr.Logger) *Renewer {
	share := minShare + (maxShare-minShare)*rand.Float64() //nolint:gosec // spreading load needs no secrecy
	return &Renewer{store: store, issue: issue, clock: clock, log: log, share: share, wakes: make(chan struct{}, 1)}
}

// IssuerAt asks the hub with the rights of the agent itself.
func IssuerAt(hub *rest.Config) (Issuer, error) {
	client, err := kubernetes.NewForConfig(hub)
	if err != nil {
		return nil, fmt.Errorf("making a client to renew the token for the hub: %w", err)
	}
	return func(ctx context.Context, namespace, account string, lifetime time.Duration) (string, error) {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(lifetime.Seconds()))}}
		answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("asking the hub for a token of %s/%s: %w", namespace, account, err)
		}
		return answer.Status.Token, nil
	}, nil
}

// Start renews the token until ctx ends.
func (r *Renewer) Start(ctx context.Context) error {
	for {
		timer := r.clock.NewTimer(r.renewIfDue(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-r.wakes:
			timer.Stop()
		case <-timer.C():
		}
	}
}

// RenewBefore has a token renewed that was issued before then. It returns whether one is awaited, and why the token cannot be
// renewed; empty if it can.
func (r *Renewer) RenewBefore(then time.Time) (pending bool, obstacle string) {
	if before := r.asked.Swap(&then); before == nil || !before.Equal(then) {
		select {
		case r.wakes <- struct{}{}:
		default: // it is about to look already
		}
	}
	switch held := r.held.Load(); {
	case held == nil:
		return true, ""
	case !held.renewable:
		return false, "The token for the hub cannot be renewed by the agent: it does not expire, or is not one of a service account. Join the cluster again"
	default:
		return held.tooOld(then), ""
	}
}

// Ends returns when the token ends; zero if it does not, or is not known.
func (r *Renewer) Ends() time.Time {
	if held := r.held.Load(); held != nil && held.renewable {
		return held.expires
	}
	return time.Time{}
}

func (h heldToken) tooOld(than time.Time) bool {
	return h.issued.Before(than) && h.answers.Before(than)
}

// noteToken notes what is known of the token.
func (r *Renewer) noteToken(token heldToken) {
	before := r.held.Swap(&token)
	if (before == nil || *before != token) && r.Changed != nil {
		r.Changed()
	}
}

// Findings returns the conditions that the hub is to be told: one if the token could not be renewed, and none otherwise.
func (r *Renewer) Findings() []metav1.Condition {
	if finding := r.finding.Load(); finding != nil {
		return []metav1.Condition{*finding}
	}
	return nil
}

// setFinding keeps what the hub is to be told.
func (r *Renewer) setFinding(finding *metav1.Condition) {
	before := r.finding.Swap(finding)
	if same := before == finding || before != nil && finding != nil && before.Reason == finding.Reason; !same && r.Changed != nil {
		r.Changed()
	}
}

// renewIfDue renews the token if that is due, and returns how long to wait until the next look.
func (r *Renewer) renewIfDue(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	token, err := r.store.Load(ctx)
	if err != nil {
		return lookEvery // the client of the hub reads it, too, and says so
	}
	held, renewable := readClaims(token)
	known := heldToken{claims: held, renewable: renewable}
	if token == r.renewed {
		known.answers = r.renewedFor
	}
	r.noteToken(known)
	if !renewable {
		r.setFinding(nil)
		r.sayItDoesNotEnd()
		return lookEvery
	}
	due := held.renewalTime(r.share)
	if token == r.renewed {
		due = r.renewedDue
	}
	asked := r.asked.Load()
	if asked != nil && known.tooOld(*asked) {
		due = r.clock.Now()
	}
	if wait := due.Sub(r.clock.Now()); wait > 0 {
		r.setFinding(nil)
		r.failures = 0
		return min(wait, lookEvery)
	}
	if err := r.replaceToken(ctx, token, held); err != nil {
		return r.recordFailure(held, err)
	}
	r.setFinding(nil)
	r.failures = 0
	if fresh, renewable := readClaims(r.renewed); renewable {
		if asked != nil {
			r.renewedFor = *asked
		}
		r.noteToken(heldToken{claims: fresh, renewable: true, answers: r.renewedFor})
	}
	return lookEvery
}

func (r *Renewer) replaceToken(ctx context.Context, token string, held claims) error {
	fresh, err := r.issue(ctx, held.namespace, held.account, held.tokenLifetime())
	if err != nil {
		return err
	}
	if err := r.store.Replace(ctx, token, fresh); err != nil {
		return err
	}
	r.renewed, r.renewedDue = fresh, r.clock.Now().Add(time.Duration(float64(held.tokenLifetime())*r.share))
	r.log.Info("Renewed the token for the hub", "object", held.namespace+"/"+held.account, "ends",
		r.clock.Now().Add(held.tokenLifetime()).UTC().Format(time.RFC3339))
	return nil
}

// recordFailure keeps what is to be said about a failure, and returns the pause before the next try.
func (r *Renewer) recordFailure(held claims, cause error) time.Duration {
	finding := findingOf(held, cause)
	if r.failures == 0 {
		r.log.Error(cause, "The token for the hub is not renewed; trying again", "ends", held.expires.UTC().Format(time.RFC3339))
	}
	r.setFinding(&finding)
	pause := min(firstRetry<<min(r.failures, 10), lastRetry)
	r.failures++
	return pause
}

// findingOf returns when the agent will be shut out, why, and what to do about it.
func findingOf(held claims, cause error) metav1.Condition {
	reason := clusterv1beta1.ReasonHubTokenNotRenewed
	remedy := "it is tried again"
	if apierrors.IsForbidden(cause) || apierrors.IsNotFound(cause) || apierrors.IsUnauthorized(cause) {
		reason = clusterv1beta1.ReasonHubTokenRenewalRefused
		remedy = "join the cluster again (kubectl fleet join, or the script), which gives its account a new token and the right to renew it"
	}
	return metav1.Condition{
		Type: clusterv1beta1.ConditionTypeHubTokenRenewed, Status: metav1.ConditionFalse, Reason: reason,
		Message: fmt.Sprintf("The member agent's token for the hub ends at %s and is not renewed: %v; %s",
			held.expires.UTC().Format(time.RFC3339), cause, remedy),
	}
}

// sayItDoesNotEnd notes once that there is nothing to renew.
func (r *Renewer) sayItDoesNotEnd() {
	if !r.eternal {
		r.eternal = true
		r.log.Info("The token for the hub is not renewed here: it does not expire, or is not one of a service account. Joining again gives one that expires and is renewed")
	}
}

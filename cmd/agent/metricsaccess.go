package agent

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// reviewedFor is how long the answer to a token holds: metrics are read every few seconds.
	reviewedFor = time.Minute
	// rememberedReaders bounds the answers that are kept.
	rememberedReaders = 100
	// reviewsPerSecond bounds what requests with ever new tokens cost the API server.
	reviewsPerSecond = 5
	reviewTimeout    = 10 * time.Second
)

// metricsAccess lets those read metrics whose token the API server knows and whose rights include to get the path: metrics
// have the names of clusters and placements.
type metricsAccess struct {
	tokens  authenticationclient.TokenReviewInterface
	rights  authorizationclient.SubjectAccessReviewInterface
	answers *cache.LRUExpireCache
}

// newMetricsFilter makes the filter of a metrics endpoint whose readers the API server of the configuration knows.
func newMetricsFilter(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	config = rest.CopyConfig(config)
	config.QPS = reviewsPerSecond
	config.Burst = 2 * reviewsPerSecond
	config.Timeout = reviewTimeout
	authentication, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("making a client to review tokens: %w", err)
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("making a client to review rights: %w", err)
	}
	return newMetricsAccess(authentication.TokenReviews(), authorization.SubjectAccessReviews(), clock.RealClock{}).filter, nil
}

func newMetricsAccess(tokens authenticationclient.TokenReviewInterface, rights authorizationclient.SubjectAccessReviewInterface,
	now cache.Clock) *metricsAccess {
	return &metricsAccess{tokens: tokens, rights: rights, answers: cache.NewLRUExpireCacheWithClock(rememberedReaders, now)}
}

// filter answers in the place of an endpoint those who may not read it.
func (a *metricsAccess) filter(log logr.Logger, endpoint http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := a.statusOf(r)
		if err != nil {
			log.Error(err, "Cannot tell whether a reader of metrics may read them")
		}
		if status == http.StatusOK {
			endpoint.ServeHTTP(w, r)
			return
		}
		http.Error(w, reasonsAgainst[status], status)
	}), nil
}

// reasonsAgainst say what a reader lacks.
var reasonsAgainst = map[int]string{
	http.StatusUnauthorized:       "show a token of this cluster: Authorization: Bearer <token>",
	http.StatusForbidden:          "the user of the token lacks the right to get the non-resource URL of this path: bind it to the ClusterRole whose name ends with -metrics-reader",
	http.StatusServiceUnavailable: "the API server cannot be asked who may read this",
}

// statusOf returns what a request is to be answered with, as far as its sender is concerned. An answer of the API server is
// remembered for a while, one that it could not give is not.
func (a *metricsAccess) statusOf(r *http.Request) (int, error) {
	token, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !given || token == "" {
		return http.StatusUnauthorized, nil
	}
	key := sha256.Sum256([]byte(r.Method + " " + r.URL.Path + " " + token))
	if answer, known := a.answers.Get(key); known {
		return answer.(int), nil
	}
	status, err := a.review(r.Context(), token, r.URL.Path, strings.ToLower(r.Method))
	if err != nil {
		return http.StatusServiceUnavailable, err
	}
	a.answers.Add(key, status, reviewedFor)
	return status, nil
}

// review asks the API server who has a token, and whether that user may do something with a path.
func (a *metricsAccess) review(ctx context.Context, token, path, verb string) (int, error) {
	known, err := a.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}},
		metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("asking whose token it is: %w", err)
	}
	if !known.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := known.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	may, err := a.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("asking what user %s may do: %w", user.Username, err)
	case !may.Status.Allowed:
		return http.StatusForbidden, nil
	default:
		return http.StatusOK, nil
	}
}

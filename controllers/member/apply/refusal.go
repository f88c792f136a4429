package apply

import (
	"errors"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Who refuses, where API servers do not name it.
const (
	byAPIServer   = "the API server"
	byRights      = "the rights of the member agent"
	byLimitRange  = "LimitRange"
	byPodSecurity = "PodSecurity"
)

// refusalForm is how API servers word a refusal by a part of them, or by a webhook, whose name the first group has. The second group has
// its own words.
type refusalForm struct {
	words *regexp.Regexp
	by    string
}

// refusalForms are in the order in which they are tried: a message of a webhook may have the words of any other.
var refusalForms = []refusalForm{
	{regexp.MustCompile(`(?s)admission webhook "([^"]+)" denied the request(?: without explanation|: (.*))`), "webhook "},
	{regexp.MustCompile(`(?s)failed calling webhook "([^"]+)": (.*)`), "webhook "},
	{regexp.MustCompile(`(?s)admission webhook "([^"]+)" ([^d].*)`), "webhook "},
	{regexp.MustCompile(`(?s)ValidatingAdmissionPolicy '([^']+)' with binding '[^']*' denied request: (.*)`), "ValidatingAdmissionPolicy "},
	{regexp.MustCompile(`(?s)policy '([^']+)' with binding '[^']*' denied request: (.*)`), "MutatingAdmissionPolicy "},
	{regexp.MustCompile(`(?s)exceeded quota: ([^,]+), (.*)`), "ResourceQuota "},
	{regexp.MustCompile(`(?s)failed quota: ([^:]+): (.*)`), "ResourceQuota "},
	{regexp.MustCompile(`(?s)unable to create new content in namespace (\S+) (because it is being terminated.*)`), "Namespace "},
}

// withoutDryRun is how API servers say that a webhook cannot be asked by a dry run.
var withoutDryRun = regexp.MustCompile(`admission webhook "([^"]+)" does not support dry run`)

// conversionFailed is how they say that objects of a kind cannot be converted.
var conversionFailed = regexp.MustCompile(`(?s)conversion webhook for ([^,]+), .*failed: (.*)`)

// judgeRefusal tells from the answer of an API server to a dry run what it would say to the write itself, who says it, and in which
// words. It is pure.
func judgeRefusal(err error) (outcome fleetflowv1alpha1.RehearsalOutcome, by, words string) {
	said := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Message != "" {
		said = status.Status().Message
	}
	if found := withoutDryRun.FindStringSubmatch(said); found != nil {
		return fleetflowv1alpha1.RehearsalUnknown, "webhook " + found[1], "the webhook takes no dry runs: its sideEffects are not None or NoneOnDryRun"
	}
	if isUnavailable(err) {
		return fleetflowv1alpha1.RehearsalUnknown, byAPIServer, said
	}
	for _, form := range refusalForms {
		if found := form.words.FindStringSubmatch(said); found != nil {
			return fleetflowv1alpha1.RehearsalRefused, form.by + found[1], wordsOr(found[2], said)
		}
	}
	if found := conversionFailed.FindStringSubmatch(said); found != nil {
		return fleetflowv1alpha1.RehearsalRefused, "conversion webhook of " + found[1], found[2]
	}
	return fleetflowv1alpha1.RehearsalRefused, refuserOf(err, said), said
}

func wordsOr(words, otherwise string) string {
	if words == "" {
		return otherwise
	}
	return words
}

// refuserOf tells parts of the API server apart that do not say their name.
func refuserOf(err error, said string) string {
	switch {
	case strings.Contains(said, "violates PodSecurity"):
		return byPodSecurity
	case apierrors.IsForbidden(err) && (strings.Contains(said, " usage per ") || strings.Contains(said, "limit to request ratio per")):
		return byLimitRange
	case apierrors.IsForbidden(err) && strings.Contains(said, "User ") && strings.Contains(said, " cannot "):
		return byRights
	default:
		return byAPIServer
	}
}

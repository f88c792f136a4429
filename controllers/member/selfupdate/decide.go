// Package selfupdate has the member agent change its own Deployment as the hub asks, as far as the owner of the cluster lets it:
// another image, another address of the hub. The old agent stays until the new one has shown that it can report, and comes back if
// the new one does not report in time. Decide is the rule; Updater reads and writes what it is about.
package selfupdate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Setup is what an agent runs with.
type Setup struct {
	Image  string `json:"image,omitempty"`
	HubURL string `json:"hubURL,omitempty"`
}

// withRequest returns the setup that a request makes of this one.
func (s Setup) withRequest(request *clusterv1beta1.AgentRequest) Setup {
	if request.Image != "" {
		s.Image = request.Image
	}
	if request.HubURL != "" {
		s.HubURL = request.HubURL
	}
	return s
}

// Phase is how far a request has come.
type Phase string

// Phases of a request.
const (
	// PhaseTrial means the Deployment has the new setup, and no agent has reported with it yet.
	PhaseTrial Phase = "Trial"
	// PhaseDone means an agent has reported with the setup that was asked for.
	PhaseDone Phase = "Done"
	// PhaseFailed means the setup is another one than was asked for.
	PhaseFailed Phase = "Failed"
)

// Record is what the Deployment's annotation says of the request that was taken up last.
type Record struct {
	RequestTime metav1.Time `json:"requestTime"`
	Phase       Phase       `json:"phase"`
	From        Setup       `json:"from"`
	To          Setup       `json:"to"`
	Started     metav1.Time `json:"started"`
	// Message says why a request has failed.
	Message string `json:"message,omitempty"`
}

// Facts are what is decided on.
type Facts struct {
	// Request is what the hub asks; nil if it asks nothing.
	Request *clusterv1beta1.AgentRequest
	// Self is the setup of this process, Template that of the Deployment.
	Self, Template Setup
	// Record is that of the Deployment; nil if it has none.
	Record *Record
	// Obstacle is why the Deployment cannot be changed; empty if it can.
	Obstacle string
	// Token says what has become of a request for a new token.
	Token TokenState
	// Reported says that the hub has taken a report of this process.
	Reported bool
	// Timeout is how long a new setup may take until an agent has reported with it.
	Timeout time.Duration
	Now     time.Time
}

// TokenState is what has become of a request for a new token.
type TokenState struct {
	// Pending says that the token was issued before the request.
	Pending bool
	// Obstacle is why it cannot be renewed; empty if it can.
	Obstacle string
}

// Decision is what to write and what to tell the hub.
type Decision struct {
	// Template is the setup to write to the Deployment; nil leaves it.
	Template *Setup
	// Record is what to note on the Deployment; nil leaves what is noted.
	Record *Record
	// Finding is what the hub is told; nil if there is nothing.
	Finding *metav1.Condition
	// Again is after how long to look again; zero if only a change matters.
	Again time.Duration
}

// Decide returns what an agent that works does about its own Deployment.
func Decide(f Facts, allowed Allowed) Decision {
	if f.Record != nil && f.Record.Phase == PhaseTrial {
		if replacesTrial(f, allowed) {
			return beginTrial(f, f.Record.From)
		}
		return decideTrial(f)
	}
	if f.Request == nil {
		return Decision{}
	}
	if f.Record != nil && f.Record.RequestTime.Equal(&f.Request.RequestTime) {
		return describeOutcome(f, *f.Record)
	}
	if why := refuseRequest(f, allowed); why != "" {
		return Decision{Finding: newFinding(metav1.ConditionFalse, clusterv1beta1.ReasonAgentRequestRefused, why)}
	}
	if !changesSetup(f.Request) {
		return describeOutcome(f, Record{Phase: PhaseDone}) // only a token, which says itself when it was issued
	}
	if f.Template.withRequest(f.Request) != f.Template {
		return beginTrial(f, f.Template)
	}
	f.Record = &Record{RequestTime: f.Request.RequestTime, Phase: PhaseTrial, From: f.Template, To: f.Template, Started: metav1.NewTime(f.Now)}
	return decideTrial(f)
}

func changesSetup(request *clusterv1beta1.AgentRequest) bool {
	return request.Image != "" || request.HubURL != ""
}

// beginTrial takes a request up: the Deployment gets what it makes of a setup that has worked.
func beginTrial(f Facts, from Setup) Decision {
	to := from.withRequest(f.Request)
	record := Record{RequestTime: f.Request.RequestTime, Phase: PhaseTrial, From: from, To: to, Started: metav1.NewTime(f.Now)}
	return Decision{Template: &to, Record: &record, Finding: underWay(record), Again: f.Timeout}
}

// replacesTrial reports whether a later request ends a trial, such as one for the setup from before it.
func replacesTrial(f Facts, allowed Allowed) bool {
	if f.Request == nil || !changesSetup(f.Request) || !f.Record.RequestTime.Before(&f.Request.RequestTime) || f.Template != f.Record.To {
		return false
	}
	before := f
	before.Template = f.Record.From
	return refuseRequest(before, allowed) == ""
}

// decideTrial decides while the Deployment has a setup with which no agent has reported yet.
func decideTrial(f Facts) Decision {
	record := *f.Record
	waited := f.Now.Sub(record.Started.Time)
	switch {
	case f.Template != record.To:
		record.Phase = PhaseFailed
		record.Message = fmt.Sprintf("the agent's Deployment was changed on the cluster meanwhile, to %s; that stays", describeSetup(f.Template))
	case f.Self == record.To && f.Reported:
		record.Phase = PhaseDone
	case waited >= f.Timeout:
		record.Phase = PhaseFailed
		record.Message = fmt.Sprintf("no agent has reported with %s within %s; the agent has %s again", describeSetup(record.To), f.Timeout,
			describeSetup(record.From))
		decision := describeOutcome(f, record)
		decision.Template = &record.From
		decision.Record = &record
		return decision
	default:
		return Decision{Finding: underWay(record), Again: f.Timeout - waited}
	}
	decision := describeOutcome(f, record)
	decision.Record = &record
	return decision
}

// describeOutcome returns what the hub reads about a request that was taken up.
func describeOutcome(f Facts, record Record) Decision {
	switch wantsToken := f.Request != nil && f.Request.RenewToken; {
	case record.Phase == PhaseFailed:
		return Decision{Finding: newFinding(metav1.ConditionFalse, clusterv1beta1.ReasonAgentRequestFailed, "The request was not met: "+
			record.Message)}
	case wantsToken && f.Token.Obstacle != "":
		return Decision{Finding: newFinding(metav1.ConditionFalse, clusterv1beta1.ReasonAgentRequestRefused, f.Token.Obstacle)}
	case wantsToken && f.Token.Pending:
		return Decision{Finding: newFinding(metav1.ConditionUnknown, clusterv1beta1.ReasonAgentRequestUnderWay,
			"The token for the hub is renewed")}
	}
	return Decision{Finding: newFinding(metav1.ConditionTrue, clusterv1beta1.ReasonAgentRequestDone, "The member agent is as requested")}
}

func underWay(record Record) *metav1.Condition {
	return newFinding(metav1.ConditionUnknown, clusterv1beta1.ReasonAgentRequestUnderWay,
		fmt.Sprintf("Since %s an agent with %s is awaited; until it can report, the agent with %s works on",
			record.Started.UTC().Format(time.RFC3339), describeSetup(record.To), describeSetup(record.From)))
}

func describeSetup(s Setup) string {
	return fmt.Sprintf("image %s and hub address %s", s.Image, s.HubURL)
}

func newFinding(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: clusterv1beta1.ConditionTypeAgentAsRequested, Status: status, Reason: reason, Message: message}
}

// refuseRequest returns why a request is not to be taken up; empty if it is.
func refuseRequest(f Facts, allowed Allowed) string {
	switch {
	case !changesSetup(f.Request):
		return ""
	case f.Obstacle != "":
		return f.Obstacle
	}
	if why := allowed.refuseImage(f.Template.Image, f.Request.Image); why != "" {
		return why
	}
	return allowed.refuseHub(f.Template.HubURL, f.Request.HubURL)
}

// Allowed is what the owner of the cluster lets the hub choose.
type Allowed struct {
	// Repositories are those whose images the hub may choose.
	Repositories []string
	// HubURLs are the addresses it may send the agent to; empty for any whose certificate is of the known authority.
	HubURLs []string
	// Pinned says that the agent trusts a certain authority for the hub, not those of the system.
	Pinned bool
}

func (a Allowed) refuseImage(present, image string) string {
	if image == "" || image == present {
		return ""
	}
	if strings.Contains(present, "@") && !strings.Contains(image, "@") {
		return fmt.Sprintf("The agent's image is named by its digest on this cluster, and %s is not: name the image by its digest", image)
	}
	for _, repository := range a.Repositories {
		if repository == Repository(image) {
			return ""
		}
	}
	return fmt.Sprintf("The owner of this cluster lets the agent have images of %s only, not %s (selfUpdate.repositories of the agent's chart)",
		strings.Join(a.Repositories, ", "), image)
}

func (a Allowed) refuseHub(present, address string) string {
	switch {
	case address == "" || address == present:
		return ""
	case len(a.HubURLs) == 0 && a.Pinned:
		return "" // a server without a certificate of the hub's authority never sees the token
	case len(a.HubURLs) == 0:
		return fmt.Sprintf("The agent has no authority of the hub of its own, so that any server could pass for the hub at %s: set selfUpdate.hubURLs "+
			"or config.hubCA of the agent's chart on this cluster", address)
	case slices.Contains(a.HubURLs, address):
		return ""
	}
	return fmt.Sprintf("The owner of this cluster does not let the agent have the hub at %s, but at %s (selfUpdate.hubURLs of the agent's chart)",
		address, strings.Join(a.HubURLs, ", "))
}

// Repository returns an image without its tag and digest.
func Repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	slash := strings.LastIndex(image, "/")
	if colon := strings.LastIndex(image, ":"); colon > slash {
		return image[:colon]
	}
	return image
}

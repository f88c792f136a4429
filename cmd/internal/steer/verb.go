// Package steer has what can be done to a fleet, a file for each verb: its name, its arguments and options, the question that is asked
// before, what is done, and what is said after. The plugin makes commands of verbs, and the dashboard makes forms of them.
package steer

import (
	"context"
	"fmt"
	"net/url"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Groups of verbs, as the help lists them.
const (
	GroupRollout = "rollout"
	GroupMembers = "members"
)

// Verb is something that can be done to a fleet.
type Verb struct {
	// Name is what the verb is called by, Aliases are other names of it, and Takes is what follows the name on a command line.
	Name    string
	Aliases []string
	Takes   string
	// Group is the group of the help that lists it; a verb without one has no command.
	Group                string
	Short, Long, Example string
	// Kinds are those of the object that the first argument names; a verb without kinds is about no object.
	Kinds []hub.Kind
	// Completes reports which runs complete the first argument, as kind/name; all objects of the kinds do if it is nil.
	Completes func(hub.Run) bool
	// Asks says that it asks before it changes something, as no other verb can undo it.
	Asks bool
	// CheckArguments refuses arguments of a wrong number or form.
	CheckArguments func(args []string) error
	// New returns a request that has the defaults of all fields.
	New func() *Request
	// Form is how pages offer the verb; nil keeps it off them.
	Form *Form
}

// Table lists all verbs: the plugin and the dashboard have what is in it.
var Table = []func() Verb{
	Run, Approve, Reject, Stop, Resume, Skip, Retry, Exempt, Rollback, Evict, Reschedule, Pause, Partition, Suspend, Unsuspend, Hold, Release,
	Cordon, Uncordon, Drain, Replace, Delete,
}

// Verbs returns all verbs.
func Verbs() []Verb {
	verbs := make([]Verb, 0, len(Table))
	for _, verb := range Table {
		verbs = append(verbs, verb())
	}
	return verbs
}

// Request is one use of a verb.
type Request struct {
	Fields []Field
	// Validate refuses values before the hub is asked; nil takes them all.
	Validate func(call *Call) error
	// Prepare looks at the target and returns what is to be done, or why it cannot be.
	Prepare func(ctx context.Context, call *Call, target hub.Found) (Deed, error)
}

// Field is an argument or an option of a verb.
type Field struct {
	// Name is that of the option, or of the argument if Argument is set: then it follows the target on a command line.
	Name, Short, Usage string
	Argument           bool
	// Into points to the value: *string, *[]string, *bool, *time.Duration or *Reason.
	Into any
	// Complete returns what the value can be. It gets the target if a command line names one before it.
	Complete func(ctx context.Context, reader hub.Reader, target hub.Found) ([]string, error)
	// Label is what a form calls the field; a form does not have one without it. Hint explains it, and Missing refuses a form that leaves
	// it empty.
	Label, Hint, Missing string
	// Required has browsers ask for it, and Long gives it more than a line.
	Required, Long bool
	// Preset is what a form has in it at first, and Linked says that links can begin it with something else. Hidden has it sent along with
	// the form by the page, which does not show it as a field.
	Preset         string
	Linked, Hidden bool
}

// Deed is what a verb does once the user agrees.
type Deed struct {
	// Question is what the user is asked before; empty asks nothing. OnTerminal asks only where a terminal is.
	Question   string
	OnTerminal bool
	// Do does it.
	Do func(ctx context.Context) (Result, error)
}

// Result is what has been done.
type Result struct {
	// Said is the result in a sentence.
	Said string
	// Made is the object that was created, if there is one to look at.
	Made hub.Ref
}

// resultSaying returns a result without an object.
func resultSaying(format string, args ...any) Result {
	return Result{Said: fmt.Sprintf(format, args...)}
}

// nothingToDo returns a deed that finds nothing to do.
func nothingToDo(format string, args ...any) Deed {
	return Deed{Do: func(context.Context) (Result, error) { return resultSaying(format, args...), nil }}
}

// Form is how pages offer a verb.
type Form struct {
	// Section is the part of the site that the page belongs to.
	Section string
	// Kinds are those whose pages offer it, and ClusterScoped leaves out objects in namespaces. A verb about no object has a Path instead,
	// in which {name} is the argument name.
	Kinds         []hub.Kind
	ClusterScoped bool
	Path          string
	// Links returns the links to the form on the page of a target; nil has none.
	Links func(target hub.Found) []Link
	// Rights returns what the user needs.
	Rights func(target hub.Found) []Right
	// Page returns what the form says.
	Page func(view View) Page
	// Back returns the page to show afterwards; the target is empty once it is gone. Nil is the page of the target.
	Back func(target hub.Found) string
}

// View is what there is when a form is shown.
type View struct {
	Target hub.Found
	// Sentence says how far a run is.
	Sentence string
	// Hold is the hold that the path names, and Holds are those in force.
	Hold  *fleetview.Hold
	Holds []fleetview.Hold
}

// Link is a link to a form.
type Link struct {
	Label string
	// Query is what the form begins with.
	Query url.Values
}

// Right is what a user needs on a kind: an object of the kind stands for it, in the namespace where the right is needed.
type Right struct {
	Verb        string
	Object      client.Object
	Subresource string
}

// Page is what a form says before it is sent.
type Page struct {
	Title, Lead, Button string
	Notes               []string
	// Refusal says why there is nothing to send.
	Refusal string
	// Choices are the clusters that a field of clusters can have.
	Choices []Choice
	// Hints explain fields by their names where that depends on what there is.
	Hints map[string]string
}

// Choice is a cluster to choose.
type Choice struct{ Name, State string }

// linkedAs returns the link to a form that is always offered.
func linkedAs(label string) func(hub.Found) []Link {
	return func(hub.Found) []Link { return []Link{{Label: label}} }
}

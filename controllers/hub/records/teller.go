package records

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
)

const (
	// maxMessage and maxValue are how much is kept of a message and of a value of data, maxComment of what a user has said, and maxName of
	// a user or of an object, in bytes; maxLabel and maxHash of the name of a stage or a namespace, and of a hash.
	maxMessage = 1024
	maxValue   = 1024
	maxComment = 8192
	maxName    = 253
	maxLabel   = 63
	maxHash    = 71
)

// teller gathers the facts of one object.
type teller struct {
	subject fleetflowv1alpha1.AuditSubjectReference
	// placement, run and planHash are those that facts are about.
	placement, run, planHash string
	// records are those that there are, as they were written.
	records []fleetflowv1alpha1.AuditRecord
	// now is the time of facts that have none of their own.
	now   time.Time
	found []fleetflowv1alpha1.AuditRecordSpec
}

// referenceTo returns the reference to an object that records are about.
func referenceTo(object metav1.Object, kind schema.GroupVersionKind) fleetflowv1alpha1.AuditSubjectReference {
	return fleetflowv1alpha1.AuditSubjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: bounded(object.GetNamespace(), maxLabel), Name: bounded(object.GetName(), maxName),
		UID: string(object.GetUID()),
	}
}

// inOrder returns the facts in the order in which they happened.
func (t *teller) inOrder() []fleetflowv1alpha1.AuditRecordSpec {
	slices.SortStableFunc(t.found, func(a, b fleetflowv1alpha1.AuditRecordSpec) int { return a.Time.Compare(b.Time.Time) })
	return t.found
}

// fact is what one record tells beyond its subject.
type fact struct {
	kind fleetflowv1alpha1.AuditRecordType
	// which tells the fact from others of its type.
	which []string
	at    time.Time
	// inOrder says that it has happened after all that is recorded, even if its time is that of something before.
	inOrder          bool
	stage            string
	by               *fleetflowv1alpha1.AuditActor
	comment, message string
	// planHash is the plan that it is about; with nil, that of the run.
	planHash *string
	data     map[string]string
}

// add adds a fact, unless its record was deleted after its time: of a chain that does not begin at its beginning, what was before its
// first record was.
func (t *teller) add(found fact) {
	if n := len(t.records); n > 0 {
		first := &t.records[0].Spec
		last := &t.records[n-1].Spec
		if first.Sequence > 1 && !found.at.After(first.Time.Time) {
			return
		}
		if found.inOrder && last.Time.After(found.at) {
			found.at = last.Time.Time
		}
	}
	if found.at.IsZero() {
		found.at = t.now
	}
	data := map[string]fleetflowv1alpha1.AuditValue{}
	for name, value := range found.data {
		if value != "" {
			data[name] = fleetflowv1alpha1.AuditValue(bounded(value, maxValue))
		}
	}
	if len(data) == 0 {
		data = nil
	}
	t.found = append(t.found, fleetflowv1alpha1.AuditRecordSpec{
		ID:   fleetflowv1alpha1.RecordID(t.subject.UID, found.kind, found.which...),
		Type: found.kind, Time: metav1.NewTime(found.at.UTC().Truncate(time.Second)), SubjectRef: t.subject,
		PlacementName: bounded(t.placement, maxName), UpdateRunName: bounded(t.run, maxName),
		StageName: bounded(found.stage, maxLabel), Actor: found.by,
		Comment: bounded(found.comment, maxComment), Message: bounded(found.message, maxMessage),
		PlanHash: bounded(ptr.Deref(found.planHash, t.planHash), maxHash), Data: data,
	})
}

// bounded returns a text as it may be kept: without what a terminal acts on, and not longer than that.
func bounded(text string, most int) string {
	return clusterv1beta1.CutText(clusterv1beta1.Printable(text), most)
}

// changerOf returns who has asked for something that the spec of an object asks for, and with which generation of it; empty if it is not
// known. Only the API server writes that down.
func changerOf(object metav1.Object, wanted string) (by *fleetflowv1alpha1.AuditActor, generation string) {
	switch by, known := rules.ChangedBy(object, wanted); {
	case !known:
		return unknown(), ""
	case by.ByFleet:
		return nil, by.Generation
	default:
		return &fleetflowv1alpha1.AuditActor{Username: bounded(by.Username, maxName), Verified: true, Channel: bounded(by.Channel, maxLabel)}, by.Generation
	}
}

// unknown is a user of whom the hub does not know who it is.
func unknown() *fleetflowv1alpha1.AuditActor { return &fleetflowv1alpha1.AuditActor{} }

package work

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// mirrors tells whether the status of what a Work brings is to be reported to the hub. What the
// hub does with it makes no difference here.
func mirrors(work *placementv1beta1.Work) bool {
	s := work.Spec.ReportBackStrategy
	return s != nil && s.Type == placementv1beta1.ReportBackStrategyTypeMirror
}

// excerpt is an object with nothing but its identity and its status; nil if it has no status.
func excerpt(live *unstructured.Unstructured) ([]byte, error) {
	status, ok := live.Object["status"]
	if !ok {
		return nil, nil
	}
	name := map[string]any{"name": live.GetName()}
	if namespace := live.GetNamespace(); namespace != "" {
		name["namespace"] = namespace
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": live.GetAPIVersion(), "kind": live.GetKind(), "metadata": name, "status": status,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the status of %s %s: %w", live.GetKind(), live.GetName(), err)
	}
	return data, nil
}

// mirrorEvery is how often at most a Work is written to because of nothing but what objects say
// about themselves: while pods come and go, a Deployment says something new all the time.
const mirrorEvery = time.Second

// mirroring is how far the reports of what objects say about themselves are.
type mirroring struct {
	changed time.Time // when one of them was reported last
	owed    bool      // whether one is held back
}

// due tells whether what is held back may be reported.
func (m mirroring) due(now time.Time) bool { return m.owed && !now.Before(m.next()) }

func (m mirroring) next() time.Time { return m.changed.Add(mirrorEvery) }

// mirror adds to a report what the objects say about themselves. The report is of these
// outcomes, one by one. A status that is the same as before keeps the time at which it was
// first seen, so that nothing is written for it; one that has changed too soon stays as it was.
func (m *mirroring) mirror(status *placementv1beta1.WorkStatus, outcomes []outcome, previous placementv1beta1.WorkStatus, now metav1.Time) {
	hold := now.Time.Before(m.next())
	m.owed = false
	before := map[placementv1beta1.WorkResourceIdentifier]*placementv1beta1.BackReportedStatus{}
	for _, m := range previous.ManifestConditions {
		m.Identifier.Ordinal = 0
		before[m.Identifier] = m.BackReportedStatus
	}
	for i, o := range outcomes {
		if o.problem != nil || len(o.excerpt) == 0 {
			continue
		}
		reported := &placementv1beta1.BackReportedStatus{ObservationTime: now}
		reported.ObservedStatus.Raw = o.excerpt
		id := o.id
		id.Ordinal = 0
		switch old := before[id]; {
		case old != nil && sameJSON(old.ObservedStatus.Raw, o.excerpt):
			reported = old
		case old != nil && hold:
			reported, m.owed = old, true
		default:
			m.changed = now.Time
		}
		status.ManifestConditions[i].BackReportedStatus = reported
	}
}

// sameJSON compares texts by what they say: the hub writes the keys in its own order.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return equality.Semantic.DeepEqual(x, y)
}

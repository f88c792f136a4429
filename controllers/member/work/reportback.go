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

// mirrorsStatus reports whether the status of a Work's objects is to be reported to the hub. The
// agent does not care what the hub does with it.
func mirrorsStatus(work *placementv1beta1.Work) bool {
	s := work.Spec.ReportBackStrategy
	return s != nil && s.Type == placementv1beta1.ReportBackStrategyTypeMirror
}

// encodeObjectStatus encodes an object's identity and status; nil if it has no status.
func encodeObjectStatus(live *unstructured.Unstructured) ([]byte, error) {
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

// reportInterval is the shortest interval between two writes of a Work that only report a changed
// status of objects: a Deployment's status changes all the time while pods come and go.
const reportInterval = time.Second

// reportLimit limits how often a changed status of objects is reported.
type reportLimit struct {
	changed time.Time // when such a change was reported last
	owed    bool      // whether a change is held back
}

// isDue reports whether a change that was held back may be reported.
func (m reportLimit) isDue(now time.Time) bool { return m.owed && !now.Before(m.nextReport()) }

func (m reportLimit) nextReport() time.Time { return m.changed.Add(reportInterval) }

// addObjectStatuses adds the objects' own statuses to a report on the same outcomes. A status that
// has not changed keeps its observation time, so that nothing is written for it. One that has
// changed too soon keeps its previous value.
func (m *reportLimit) addObjectStatuses(
	status *placementv1beta1.WorkStatus, outcomes []outcome, previous placementv1beta1.WorkStatus, now metav1.Time,
) {
	tooSoon := now.Time.Before(m.nextReport())
	m.owed = false
	before := map[placementv1beta1.WorkResourceIdentifier]*placementv1beta1.BackReportedStatus{}
	for _, m := range previous.ManifestConditions {
		m.Identifier.Ordinal = 0
		before[m.Identifier] = m.BackReportedStatus
	}
	for i, o := range outcomes {
		if o.problem != nil || len(o.objectStatus) == 0 {
			continue
		}
		reported := &placementv1beta1.BackReportedStatus{ObservationTime: now}
		reported.ObservedStatus.Raw = o.objectStatus
		id := o.id
		id.Ordinal = 0
		switch old := before[id]; {
		case old != nil && sameJSON(old.ObservedStatus.Raw, o.objectStatus):
			reported = old
		case old != nil && tooSoon:
			reported = old
			m.owed = true
		default:
			m.changed = now.Time
		}
		status.ManifestConditions[i].BackReportedStatus = reported
	}
}

// sameJSON compares the values of two texts: the hub orders the keys in its own way.
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

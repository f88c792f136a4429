package work

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

// reporter writes the status of Works on the hub. It changes nothing on the member.
type reporter struct {
	hub     client.Client
	engine  *apply.Engine
	pruning PruningOptions
	clock   clock.PassiveClock
	metrics *Metrics
}

func (r *Reconciler) reporter() reporter {
	return reporter{hub: r.Hub, engine: r.engine, pruning: r.Pruning, clock: r.Clock, metrics: r.Metrics}
}

// writeReport builds the status of a Work from the outcomes of its manifests, adds the status of
// the objects if it is asked for, and writes it to the hub.
func (r reporter) writeReport(ctx context.Context, work *placementv1beta1.Work, mem *memory, outcomes []outcome,
	buildStatus func(int64, []outcome, placementv1beta1.WorkStatus, metav1.Time) placementv1beta1.WorkStatus,
) error {
	previous := mem.lastStatus(work)
	status := buildStatus(work.Generation, outcomes, previous, metav1.NewTime(r.clock.Now()))
	if mirrorsStatus(work) {
		mem.statusReports.addObjectStatuses(&status, outcomes, previous, metav1.NewTime(r.clock.Now()))
	}
	status.Conditions = withRemoval(status.Conditions, previous.Conditions, mem.told, work.Generation, metav1.NewTime(r.clock.Now()))
	mem.countReports.addPodCounts(&status, outcomes, previous, metav1.NewTime(r.clock.Now()))
	mem.valueReports.addStateValues(&status, work.Spec.ReportState, outcomes, previous, metav1.NewTime(r.clock.Now()))
	return r.writeStatus(ctx, work, mem, status)
}

// writeStatus writes a status if it differs from the last one, trimmed if it is too large. It
// replaces the status as a whole, only on the Work with the same UID. There is no other writer, so
// no resource version is needed.
func (r reporter) writeStatus(ctx context.Context, work *placementv1beta1.Work, mem *memory, status placementv1beta1.WorkStatus) error {
	limit, err := maxStatusSize(work)
	if err != nil {
		return err
	}
	previous := mem.lastStatus(work)
	status = rules.StorableReport.Apply(status)
	status = trimStatus(status, previous, limit, work.Generation, metav1.NewTime(r.clock.Now()))
	if equality.Semantic.DeepEqual(previous, status) {
		mem.status = &status
		mem.unsent = unsent{}
		r.metrics.countPass(work.Generation, &status)
		return nil
	}
	if mem.unsent.mustWait(work.Generation, r.clock.Now()) {
		return errReportWaits
	}
	content := map[string]any{"conditions": status.Conditions, "manifestConditions": status.ManifestConditions}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": work.UID}, "status": content})
	if err != nil {
		return fmt.Errorf("encoding the status of Work %s: %w", work.Name, err)
	}
	target := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	err = r.hub.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, data), client.FieldOwner(apply.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		mem.unsent = mem.unsent.addFailure(work.Generation, r.clock.Now())
		return fmt.Errorf("writing the status of Work %s: %w", work.Name, err)
	}
	mem.unsent = unsent{}
	log.FromContext(ctx).V(1).Info("Reported on the Work", "generation", work.Generation)
	mem.status = &status
	r.metrics.countPass(work.Generation, &status)
	return nil
}

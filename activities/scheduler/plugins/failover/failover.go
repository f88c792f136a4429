// Package failover keeps placements that fail over off the clusters that they would leave.
package failover

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/tainttoleration"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

type plugin struct{}

// New returns the plug-in.
func New() framework.Plugin { return plugin{} }

// Name of the plug-in.
func (plugin) Name() string { return "Failover" }

// PreFilter has nothing to ask if the placement does not fail over.
func (plugin) PreFilter(c *framework.Cycle) (skip bool, err error) { return c.Failover == nil, nil }

// Filter keeps the placement off a cluster that it would leave at once. Whether it leaves a cluster that it is on depends on what
// else can be picked, which no filter knows.
func (plugin) Filter(c *framework.Cycle, cluster *clusterv1beta1.MemberCluster) string {
	if c.Holds(cluster.Name) {
		return ""
	}
	if reason := c.Barred[cluster.Name]; reason != "" {
		return reason
	}
	return DueOf(c.Policy.Tolerations, c.Failover, cluster, nil, c.Now).Against(c.Now)
}

// Due is when a placement leaves a cluster, if another can be picked.
type Due struct {
	// At is zero if there is no reason to leave.
	At time.Time
	// Reason says, for people, why.
	Reason string
	// Ill says that it is because of the health of what is placed there.
	Ill bool
}

// Against returns the reason to leave the cluster; empty as long as there is none.
func (d Due) Against(now time.Time) string {
	if d.At.IsZero() || d.At.After(now) {
		return ""
	}
	return d.Reason
}

// DueOf returns when a placement leaves a cluster: as soon as one of its taints is not tolerated any more, or it has not been healthy for
// too long, or what is placed there has not been available for too long, of which the health tells. An instant that is yet to come counts
// as now, so that no clock that is wrong puts the time off for ever.
func DueOf(tolerations []placementv1beta1.Toleration, rule *placementv1beta1.FailoverStrategy, cluster *clusterv1beta1.MemberCluster,
	health *placementv1beta1.BindingHealth, now time.Time) Due {
	due := Due{}
	if rule.Cluster != nil {
		due = dueCluster(tolerations, rule.Cluster, cluster, now)
	}
	if rule.Application == nil {
		return due
	}
	if at, reason := rules.LeaveAt(rule.Application, health, now); !at.IsZero() && (due.At.IsZero() || at.Before(due.At)) {
		due = Due{At: at, Reason: reason, Ill: true}
	}
	return due
}

// dueCluster returns when a cluster itself is to be left.
func dueCluster(tolerations []placementv1beta1.Toleration, rule *placementv1beta1.ClusterFailover, cluster *clusterv1beta1.MemberCluster,
	now time.Time) Due {
	due := dueUnready(rule, cluster, now)
	for _, taint := range cluster.Spec.Taints {
		if taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		if found := dueTaint(tolerations, cluster, taint, now); !found.At.IsZero() && (due.At.IsZero() || found.At.Before(due.At)) {
			due = found
		}
	}
	return due
}

// dueTaint returns when a taint is not tolerated any more: the first toleration that matches counts.
func dueTaint(tolerations []placementv1beta1.Toleration, cluster *clusterv1beta1.MemberCluster, taint clusterv1beta1.Taint,
	now time.Time) Due {
	since := clusterrules.TaintSince(cluster, taint, now)
	toleration := tainttoleration.First(tolerations, taint)
	switch {
	case toleration == nil:
		return Due{At: since, Reason: fmt.Sprintf("its taint %s is not tolerated", taint)}
	case toleration.TolerationSeconds == nil:
		return Due{}
	default:
		return Due{At: after(since, *toleration.TolerationSeconds),
			Reason: fmt.Sprintf("its taint %s is not tolerated for longer than %d s", taint, *toleration.TolerationSeconds)}
	}
}

func dueUnready(rule *placementv1beta1.ClusterFailover, cluster *clusterv1beta1.MemberCluster, now time.Time) Due {
	healthy := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)
	if rule.NotReadySeconds == nil || healthy == nil || healthy.Status == metav1.ConditionTrue {
		return Due{}
	}
	since := rules.NotAfter(healthy.LastTransitionTime.Time, now)
	return Due{At: after(since, int64(*rule.NotReadySeconds)), Reason: fmt.Sprintf("it has not been healthy for longer than %d s",
		*rule.NotReadySeconds)}
}

func after(since time.Time, seconds int64) time.Time {
	return since.Add(time.Duration(seconds) * time.Second)
}

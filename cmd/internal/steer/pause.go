package steer

import (
	"context"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// onPlacement returns a verb about one placement that takes nothing else.
func onPlacement(verb Verb, prepare func(call *Call, p hub.Placement) (Deed, error)) Verb {
	verb.Takes = "PLACEMENT"
	verb.Group = GroupRollout
	verb.Kinds = []hub.Kind{hub.KindPlacement}
	verb.Example = "  kubectl fleet " + verb.Name + " web"
	verb.CheckArguments = exactlyOne(verb.Name, "a placement", verb.Name+" web")
	verb.New = func() *Request {
		return &Request{Prepare: func(_ context.Context, call *Call, target hub.Found) (Deed, error) {
			return prepare(call, *target.Placement)
		}}
	}
	return verb
}

// Pause pauses the rolling update of a placement.
func Pause() Verb {
	return onPlacement(Verb{
		Name:  "pause",
		Short: "Pause the rolling update of a placement: no more clusters are updated",
		Long: `Pause the rolling update of a placement by setting its spec.strategy.rollingUpdate.paused. Clusters that were updated stay so,
removals, evictions and first placements go on. kubectl fleet resume placement/NAME goes on from there.`,
	}, func(call *Call, p hub.Placement) (Deed, error) { return setPaused(call, p, true), nil })
}

// setPaused pauses the rolling update of a placement, or resumes it. It is no harm to ask for what is the case.
func setPaused(call *Call, p hub.Placement, paused bool) Deed {
	done := "resumed"
	already := "is not paused"
	if paused {
		done = "paused"
		already = "is paused already"
	}
	if rules.RollingUpdateOf(p.Object).Paused == paused {
		return nothingToDo("%s %s", p.Ref, already)
	}
	return Deed{Do: func(ctx context.Context) (Result, error) {
		err := call.changeRollingUpdate(ctx, p, func(config *placementv1beta1.RollingUpdateConfig) { config.Paused = paused })
		return resultSaying("%s %s", p.Ref, done), err
	}}
}

// partitionForm is how a partition is written.
var partitionForm = regexp.MustCompile(`^([0-9]{1,9}|(100|[0-9]{1,2})%)$`)

// Partition keeps a number of clusters of a placement on the older snapshot.
func Partition() Verb {
	return Verb{
		Name: "partition", Takes: "PLACEMENT (NUMBER | PERCENT%)", Group: GroupRollout, Kinds: []hub.Kind{hub.KindPlacement},
		Short: "Keep a number of clusters of a placement on the older snapshot",
		Long: `Set how many clusters of a placement stay on the older resource snapshot (spec.strategy.rollingUpdate.partition): a number, or
a percentage of the clusters asked for, rounded up. A smaller one takes the rollout on, 0 to its end; a larger one takes
nothing back.`,
		Example: `  kubectl fleet partition web 3
  kubectl fleet partition web 50%`,
		CheckArguments: func(args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("kubectl fleet partition needs a placement and how many of its clusters stay on the older snapshot, as in: kubectl fleet partition web 3")
			}
			if !partitionForm.MatchString(args[1]) {
				return fmt.Errorf("%q is no partition: give a number of clusters, or a percentage from 0%% to 100%%", args[1])
			}
			return nil
		},
		New: func() *Request {
			var stays string
			return &Request{
				Fields: []Field{{Name: "partition", Argument: true, Into: &stays}},
				Prepare: func(_ context.Context, call *Call, target hub.Found) (Deed, error) {
					return setPartition(call, *target.Placement, stays), nil
				},
			}
		},
	}
}

// setPartition sets how many clusters of a placement stay on the older snapshot.
func setPartition(call *Call, p hub.Placement, stays string) Deed {
	partition := intstr.Parse(stays)
	if given := rules.RollingUpdateOf(p.Object).Partition; given != nil && *given == partition {
		return nothingToDo("the partition of %s is %s already", p.Ref, stays)
	}
	return Deed{Do: func(ctx context.Context) (Result, error) {
		err := call.changeRollingUpdate(ctx, p, func(config *placementv1beta1.RollingUpdateConfig) { config.Partition = &partition })
		return resultSaying("partition of %s set to %s", p.Ref, stays), err
	}}
}

// changeRollingUpdate changes the settings of the rolling update of a placement, which may have none yet.
func (c *Call) changeRollingUpdate(ctx context.Context, p hub.Placement, change func(*placementv1beta1.RollingUpdateConfig)) error {
	if p.External() {
		return fmt.Errorf("%s is rolled out by update runs: stop and resume its run instead, with kubectl fleet stop and resume", p.Ref)
	}
	return c.ChangeStrategy(ctx, p, "rollingUpdate", func(strategy *placementv1beta1.RolloutStrategy) any {
		config := ptr.Deref(strategy.RollingUpdate, placementv1beta1.RollingUpdateConfig{})
		change(&config)
		strategy.RollingUpdate = &config
		return config
	})
}

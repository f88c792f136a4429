package stagetask

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// registry has the types of tasks by the names that strategies and statuses have for them.
var registry = map[placementv1beta1.StageTaskType]Type{
	placementv1beta1.StageTaskTypeApproval:  approval{},
	placementv1beta1.StageTaskTypeTimedWait: timedWait{},
	placementv1beta1.StageTaskTypeAnalysis:  analysis{},
	placementv1beta1.StageTaskTypeRehearsal: rehearsal{},
	placementv1beta1.StageTaskTypePrePull:   prePull{},
}

// Register adds a type until the returned function is called: tests add types this way. It must not run
// while the registry is read.
func Register(name placementv1beta1.StageTaskType, t Type) (remove func()) {
	registry[name] = t
	return func() { delete(registry, name) }
}

// typeOf returns a type by its name, and one that is refused if there is none.
func typeOf(name placementv1beta1.StageTaskType) Type {
	if t, ok := registry[name]; ok {
		return t
	}
	return unknown{name}
}

// unknown stands for a type that this version does not have: the hub may have been written to by another.
type unknown struct {
	name placementv1beta1.StageTaskType
}

// Validate implements Type: it refuses the task.
func (u unknown) Validate(Side, placementv1beta1.StageTask) string {
	names := make([]string, 0, len(registry))
	for _, name := range slices.Sorted(maps.Keys(registry)) {
		names = append(names, string(name))
	}
	return fmt.Sprintf("there is no type %s; the types are %s", u.name, strings.Join(names, ", "))
}

// Freeze implements Type.
func (u unknown) Freeze(Names, string, Side) placementv1beta1.StageTaskStatus {
	return placementv1beta1.StageTaskStatus{Type: u.name}
}

// Describe implements Type: a task of an unknown type is never done.
func (u unknown) Describe(Task) State { return State{Title: string(u.name)} }

// Check implements Type: it ends the run.
func (u unknown) Check(_ context.Context, check Check) (Outcome, error) {
	return Outcome{Refused: fmt.Sprintf("a task of stage `%s`: %s", check.Stage.StageName, u.Validate(check.Side, check.Config))}, nil
}

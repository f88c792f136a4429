package steer

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
)

// Run rolls a placement out in stages.
func Run() Verb {
	return Verb{
		Name: "run", Takes: "PLACEMENT --strategy NAME", Group: GroupRollout, Kinds: []hub.Kind{hub.KindPlacement},
		Short: "Roll a placement out in stages",
		Long: `Create a staged update run: it takes a resource snapshot of a placement whose strategy is External through the stages of
a ClusterStagedUpdateStrategy. See kubectl fleet plan for what it would do. A run that the hub
would refuse is not created: with a snapshot that is not there, or a cluster in no stage or in two.

With --plan, the run follows a plan that was written by kubectl fleet plan -o json and reviewed, such as in a pull request. The
hub begins it only if its plan comes out the same; otherwise the run ends before anything is written, and says what has changed.`,
		Example: `  # Roll out the latest snapshot, and watch
  kubectl fleet run web --strategy careful --watch

  # An older one: a rollback through all gates
  kubectl fleet run web --strategy careful --index 3

  # By a plan that was reviewed
  kubectl fleet run web --plan plan.json

  # Work the stages out and wait for kubectl fleet resume
  kubectl fleet run web --strategy careful --initialize --name web-friday`,
		CheckArguments: exactlyOne("run", "a placement", "run web --strategy careful"),
		New: func() *Request {
			s := &start{}
			return &Request{Validate: s.validate, Prepare: s.prepare, Fields: []Field{
				{Name: "strategy", Into: &s.strategy, Hidden: true, Usage: "The ClusterStagedUpdateStrategy with the stages (required without --plan).",
					Complete: Strategies},
				{Name: "index", Into: &s.index, Hidden: true, Usage: "The resource snapshot to roll out. (default: the latest when the run starts)"},
				{Name: "plan", Into: &s.plan, Usage: "File with the plan that the run is to follow, of kubectl fleet plan -o json."},
				{Name: "name", Into: &s.name, Usage: "Name of the run. (default: PLACEMENT-N, with the next N that is free)"},
				{Name: "initialize", Into: &s.initialize, Hidden: true, Usage: "Only work the stages out; kubectl fleet resume starts the run."},
			}}
		},
		Form: &Form{
			Kinds: []hub.Kind{hub.KindPlacement}, Rights: createsRun,
			Links: func(target hub.Found) []Link {
				if !target.Placement.External() {
					return nil
				}
				return []Link{{Label: "Roll out"}}
			},
		},
	}
}

// start is what was asked for.
type start struct {
	name, strategy, index, plan string
	initialize                  bool
	// reviewed is the plan in the file plan.
	reviewed plan.Plan
}

func (s *start) validate(*Call) error {
	if s.plan != "" {
		if err := s.readPlan(); err != nil {
			return err
		}
	}
	if s.strategy == "" {
		return newInvalidError("--strategy is missing: name the ClusterStagedUpdateStrategy with the stages; kubectl get clusterstagedupdatestrategies lists them")
	}
	return nil
}

// readPlan reads the plan that the run is to follow.
func (s *start) readPlan() error {
	raw, err := os.ReadFile(s.plan)
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	if err := json.Unmarshal(raw, &s.reviewed); err != nil || s.reviewed.PlanHash == "" || s.reviewed.Outline == nil {
		return newInvalidError("%s has no plan with a hash: write one with kubectl fleet plan PLACEMENT -o json, without --no-diff", s.plan)
	}
	if s.strategy == "" {
		s.strategy = s.reviewed.Strategy
	}
	if s.index == "" && s.reviewed.Snapshot != s.reviewed.Latest { // it was not a plan of the latest
		s.index = strconv.Itoa(s.reviewed.Snapshot)
	}
	if s.strategy != s.reviewed.Strategy {
		return newInvalidError("--strategy %s is not that of the plan in %s, which is %s: leave --strategy out", s.strategy, s.plan, s.reviewed.Strategy)
	}
	return nil
}

// followPlan has a run follow the plan that was reviewed, if there is one; it returns the annotation that goes with it.
func (s *start) followPlan(placement hub.Ref, spec *placementv1beta1.UpdateRunSpec) (map[string]string, error) {
	if s.plan == "" {
		return nil, nil
	}
	if s.reviewed.Placement != placement.String() {
		return nil, fmt.Errorf("the plan in %s is that of %s, not of %s", s.plan, s.reviewed.Placement, placement)
	}
	outline, err := json.Marshal(s.reviewed.Outline)
	if err != nil {
		return nil, fmt.Errorf("writing the outline of the plan: %w", err)
	}
	spec.ExpectedPlanHash = s.reviewed.PlanHash
	return map[string]string{placementv1beta1.ExpectedPlanAnnotation: string(outline)}, nil
}

// prepare looks at what a run of a placement would do.
func (s *start) prepare(ctx context.Context, call *Call, target hub.Found) (Deed, error) {
	placement := *target.Placement
	if !placement.External() {
		return Deed{}, fmt.Errorf("%s rolls out by itself: runs are for placements whose spec.strategy.type is External", placement.Ref)
	}
	if err := s.checkStrategy(ctx, call.Client, placement.Namespace); err != nil {
		return Deed{}, err
	}
	if err := s.checkPlan(ctx, call, placement); err != nil {
		return Deed{}, err
	}
	ref := hub.Ref{Kind: hub.KindRun, Namespace: placement.Namespace, Name: s.name}
	if ref.Name == "" {
		var err error
		if ref.Name, err = freeName(ctx, call.Client, placement.Ref); err != nil {
			return Deed{}, err
		}
	}
	spec := placementv1beta1.UpdateRunSpec{PlacementName: placement.Name, StagedUpdateStrategyName: s.strategy,
		ResourceSnapshotIndex: s.index, State: placementv1beta1.StateRun}
	annotations, err := s.followPlan(placement.Ref, &spec)
	if err != nil {
		return Deed{}, err
	}
	done := "created"
	if s.initialize {
		spec.State = placementv1beta1.StateInitialize
		done = "created: it works its stages out and waits for kubectl fleet resume " + ref.Name
	}
	return Deed{Do: func(ctx context.Context) (Result, error) {
		return Result{Said: fmt.Sprintf("%s %s", ref, done), Made: ref}, call.createRun(ctx, ref, spec, annotations, "")
	}}, nil
}

// checkStrategy looks for the strategy: a run without one fails at once, and a name is used up.
func (s *start) checkStrategy(ctx context.Context, c client.Reader, namespace string) error {
	strategy, err := hub.Reader{Reader: c}.Strategy(ctx, namespace, s.strategy)
	switch {
	case apierrors.IsForbidden(err): // who may create runs need not be able to read strategies
		return nil
	case err == nil && strategy == nil:
		kind := "ClusterStagedUpdateStrategy"
		if namespace != "" {
			kind = "StagedUpdateStrategy in namespace " + namespace
		}
		return fmt.Errorf("there is no %s named %q: nothing was created", kind, s.strategy)
	}
	return err
}

// checkPlan refuses a run that would fail whenever it starts, and warns of another that is under way.
func (s *start) checkPlan(ctx context.Context, call *Call, placement hub.Placement) error {
	facts, _, err := plan.Read(ctx, call.Client, placement, plan.Wish{Name: "<run>", Strategy: s.strategy, Snapshot: plan.Index(s.index)})
	if apierrors.IsForbidden(err) { // who may create runs need not be able to read snapshots; the run says itself what is wrong
		return nil
	}
	if err != nil {
		return err
	}
	made, err := plan.Make(facts)
	if err != nil {
		return err
	}
	if refusals := made.Refusals(); len(refusals) > 0 {
		return fmt.Errorf("a run would fail, and was not created: %s", strings.Join(refusals, "; "))
	}
	for _, note := range made.Notes {
		call.Warn(note)
	}
	return nil
}

// Strategies returns the strategies that runs can have: those without a namespace, or those of the one that is named.
func Strategies(ctx context.Context, reader hub.Reader, _ hub.Found) ([]string, error) {
	scope := placementv1beta1.Scope{Namespace: reader.Namespace}
	return namesIn(ctx, reader, scope.NewUpdateStrategyList(), client.InNamespace(scope.Namespace))
}

// namesIn returns the names of the objects of a list.
func namesIn(ctx context.Context, c client.Reader, list client.ObjectList, options ...client.ListOption) ([]string, error) {
	if err := c.List(ctx, list, options...); err != nil {
		return nil, err
	}
	objects, err := meta.ExtractList(list)
	var names []string
	for _, object := range objects {
		if named, is := object.(metav1.Object); is {
			names = append(names, named.GetName())
		}
	}
	return names, err
}

// freeName returns the name of the placement with the next number that no run has.
func freeName(ctx context.Context, c client.Reader, placement hub.Ref) (string, error) {
	runs, err := hub.Reader{Reader: c, Namespace: placement.Namespace}.Runs(ctx)
	if err != nil {
		return "", err
	}
	last := 0
	for _, run := range runs {
		text, mine := strings.CutPrefix(run.Name, placement.Name+"-")
		if number, err := strconv.Atoi(text); mine && err == nil && run.Namespace == placement.Namespace {
			last = max(last, number)
		}
	}
	return fmt.Sprintf("%s-%d", placement.Name, last+1), nil
}

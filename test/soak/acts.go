package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/bench/hollow"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

const (
	zoneLabel = "soak.fleetflow/zone"
	configMap = "config"
	valueKey  = "value"
	// patience is how long a user tries again while the hub does not answer.
	patience = 3 * time.Minute
	tryEvery = 250 * time.Millisecond
)

var zones = []string{"a", "b", "c"}

func hollowName(i int) string { return hollow.Name(i) }

// world is a fleet under soak.
type world struct {
	*access.Access
	// components are those of the fleet that run when the soak begins, and have to run again when it ends.
	components []string
	hollow     *hollow.Fleet
	began      time.Time
	// upgrade is nil in a soak of one build.
	upgrade *upgrade
	peer    *peer
	// links are those of the fleet's hub agent that are cut, by the names that steps give them.
	links map[string]*link
	// tasks are those of workflows, as far as their histories were read.
	tasks tasks

	mu sync.Mutex
	// runs counts those that were made for each placement.
	runs map[string]int
	// refusals are steps that the API server has refused, though nothing was wrong with them.
	refusals []string
}

// acts are what steps do, by verb.
var acts = map[string]func(ctx context.Context, w *world, now step) error{
	"place": place, "change": change, "resize": resize, "limit": limit, "remove": remove,
	"pause":   func(ctx context.Context, w *world, now step) error { return w.setPaused(ctx, now.Target, true) },
	"unpause": func(ctx context.Context, w *world, now step) error { return w.setPaused(ctx, now.Target, false) },
	"run":     run,
	"approve": func(ctx context.Context, w *world, _ step) error { return w.approveAll(ctx) },
	"stop": func(ctx context.Context, w *world, now step) error {
		return w.steerRuns(ctx, now.Target, placementv1beta1.StateStop)
	},
	"resume": func(ctx context.Context, w *world, now step) error {
		return w.steerRuns(ctx, now.Target, placementv1beta1.StateRun)
	},
	"forget": forget, "evict": evict, "budget": budget,
	"unbudget": func(ctx context.Context, w *world, now step) error {
		return w.remove(ctx, &placementv1beta1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: now.Target}})
	},
	"hold": hold,
	"release": func(ctx context.Context, w *world, now step) error {
		return w.remove(ctx, &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: now.Target}})
	},
	"shut": shut,
	"open": func(ctx context.Context, w *world, now step) error {
		return w.remove(ctx, &fleetflowv1alpha1.RolloutWindow{ObjectMeta: metav1.ObjectMeta{Name: now.Target}})
	},
	"leave": func(ctx context.Context, w *world, now step) error {
		return retry(ctx, func() error { return w.hollow.Leave(ctx, now.Target) })
	},
	"join": func(ctx context.Context, w *world, now step) error {
		i, err := strconv.Atoi(strings.TrimPrefix(now.Target, "hollow-"))
		if err != nil {
			return err
		}
		return retry(ctx, func() error { return w.hollow.Rejoin(ctx, i) })
	},
	"behave": func(ctx context.Context, w *world, now step) error {
		return w.hollow.Behave(ctx, behaviourOf(now.Kind), now.Target)
	},
	"wipe": func(ctx context.Context, w *world, now step) error {
		if err := w.readTasks(ctx); err != nil { // they are gone afterwards
			return err
		}
		return w.Control.Do(ctx, control.Wipe, now.Target)
	},
	"kill": kill, "freeze": freeze, "slow": slow, "cut": cut, "partition": partition, "fill": fill,
	"exchange": func(ctx context.Context, w *world, now step) error {
		return w.upgrade.exchange(ctx, w, now.Target, now.Kind)
	},
}

func behaviourOf(kind string) hollow.Behaviour {
	switch kind {
	case "slow":
		return hollow.Behaviour{Latency: 4 * time.Second}
	case "failing":
		return hollow.Behaviour{Fails: true}
	case "unavailable":
		return hollow.Behaviour{Unavailable: true}
	case "vanished":
		return hollow.Behaviour{Vanished: true}
	case "ahead":
		return hollow.Behaviour{Clock: 10 * time.Minute}
	case "behind":
		return hollow.Behaviour{Clock: -10 * time.Minute}
	}
	return hollow.Behaviour{}
}

// retry does what a patient user does: again while the hub does not answer or another writer was faster.
func retry(ctx context.Context, do func() error) error {
	last := error(nil)
	err := wait.PollUntilContextTimeout(ctx, tryEvery, patience, true, func(context.Context) (bool, error) {
		last = do()
		return last == nil || !passes(last), nil
	})
	if last != nil {
		return last
	}
	return err
}

// passes reports whether an error goes by itself: it is not what the API server says of the object.
func passes(err error) bool {
	if apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) {
		return true
	}
	return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && !errors.Is(err, context.Canceled)
}

func (w *world) remove(ctx context.Context, object client.Object) error {
	return retry(ctx, func() error { return client.IgnoreNotFound(w.Hub.Delete(ctx, object)) })
}

// edit changes a stored object; one that is not there is passed over.
func edit[T client.Object](ctx context.Context, w *world, object T, change func(T)) error {
	return retry(ctx, func() error {
		if err := w.Hub.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return client.IgnoreNotFound(err)
		}
		if !object.GetDeletionTimestamp().IsZero() {
			return nil
		}
		change(object)
		return client.IgnoreNotFound(w.Hub.Update(ctx, object))
	})
}

func placementNamed(name string) *placementv1beta1.ClusterResourcePlacement {
	return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// content is what a placement places.
func (w *world) content(ctx context.Context, name string) error {
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMap, Namespace: name}, Data: map[string]string{valueKey: "0"}},
	} {
		if err := retry(ctx, func() error {
			if err := w.Hub.Create(ctx, object); !apierrors.IsAlreadyExists(err) {
				return err
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// place creates a placement, unless there is one of the name.
func place(ctx context.Context, w *world, now step) error {
	if err := w.content(ctx, now.Target); err != nil {
		return err
	}
	p := placementNamed(now.Target)
	p.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: now.Target}}
	p.Spec.Policy = policyOf(now)
	p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
	if !now.External {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.RollingUpdateRolloutStrategyType,
			RollingUpdate: limitsOf(now.N)}
	}
	return retry(ctx, func() error {
		if err := w.Hub.Create(ctx, p.DeepCopy()); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
}

func policyOf(now step) *placementv1beta1.PlacementPolicy {
	switch now.Kind {
	case "PickN":
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(now.N))}
	case "PickFixed":
		names := []string{"member-1"}
		for i := range now.N {
			names = append(names, hollowName(i))
		}
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: names}
	case "Zone":
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType, Affinity: &placementv1beta1.Affinity{
			ClusterAffinity: &placementv1beta1.ClusterAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{
				ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: inZone(zones[now.N%len(zones)])}},
			}},
		}}
	}
	return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType}
}

func inZone(zone string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{zoneLabel: zone}}
}

// limitsOf returns the limits of a rolling update, as a number says.
func limitsOf(n int) *placementv1beta1.RollingUpdateConfig {
	return &placementv1beta1.RollingUpdateConfig{
		MaxUnavailable: new(intstr.FromString(fmt.Sprintf("%d%%", 5*(1+n%10)))), MaxSurge: new(intstr.FromInt32(int32(n % 3))),
		UnavailablePeriodSeconds: new(int32(n % 2)),
	}
}

func change(ctx context.Context, w *world, now step) error {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMap, Namespace: now.Target}}
	return edit(ctx, w, c, func(c *corev1.ConfigMap) { c.Data = map[string]string{valueKey: strconv.Itoa(now.N)} })
}

func resize(ctx context.Context, w *world, now step) error {
	return edit(ctx, w, placementNamed(now.Target), func(p *placementv1beta1.ClusterResourcePlacement) {
		if p.Spec.Policy.NumberOfClusters != nil {
			p.Spec.Policy.NumberOfClusters = new(int32(now.N))
		}
	})
}

func limit(ctx context.Context, w *world, now step) error {
	return edit(ctx, w, placementNamed(now.Target), func(p *placementv1beta1.ClusterResourcePlacement) {
		if p.Spec.Strategy.RollingUpdate != nil {
			paused := p.Spec.Strategy.RollingUpdate.Paused
			p.Spec.Strategy.RollingUpdate = limitsOf(now.N)
			p.Spec.Strategy.RollingUpdate.Paused = paused
		}
	})
}

func (w *world) setPaused(ctx context.Context, name string, paused bool) error {
	return edit(ctx, w, placementNamed(name), func(p *placementv1beta1.ClusterResourcePlacement) {
		if p.Spec.Strategy.RollingUpdate != nil {
			p.Spec.Strategy.RollingUpdate.Paused = paused
		}
	})
}

func remove(ctx context.Context, w *world, now step) error {
	return w.remove(ctx, placementNamed(now.Target))
}

// runsOf returns the runs of a placement, oldest first.
func (w *world) runsOf(ctx context.Context, placement string) ([]placementv1beta1.ClusterStagedUpdateRun, error) {
	var list placementv1beta1.ClusterStagedUpdateRunList
	if err := retry(ctx, func() error { return w.Hub.List(ctx, &list) }); err != nil {
		return nil, err
	}
	mine := slices.DeleteFunc(list.Items, func(r placementv1beta1.ClusterStagedUpdateRun) bool { return r.Spec.PlacementName != placement })
	slices.SortFunc(mine, func(a, b placementv1beta1.ClusterStagedUpdateRun) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return mine, nil
}

// run starts a run, unless one of the placement goes on, or the placement is not left to runs.
func run(ctx context.Context, w *world, now step) error {
	p := placementNamed(now.Target)
	err := retry(ctx, func() error { return w.Hub.Get(ctx, client.ObjectKeyFromObject(p), p) })
	if err != nil || !p.DeletionTimestamp.IsZero() || p.Spec.Strategy.Type != placementv1beta1.ExternalRolloutStrategyType {
		return client.IgnoreNotFound(err)
	}
	earlier, err := w.runsOf(ctx, now.Target)
	if err != nil {
		return err
	}
	if n := len(earlier); n > 0 && !rules.IsRunOver(&earlier[n-1]) {
		return nil
	}
	w.mu.Lock()
	w.runs[now.Target]++
	name := fmt.Sprintf("%s-%d", now.Target, w.runs[now.Target])
	w.mu.Unlock()
	r := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: placementv1beta1.UpdateRunSpec{PlacementName: now.Target, StagedUpdateStrategyName: now.Kind}}
	return retry(ctx, func() error {
		if err := w.Hub.Create(ctx, r.DeepCopy()); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
}

// makeStrategies makes those that runs name.
func (w *world) makeStrategies(ctx context.Context) error {
	stages := func(most intstr.IntOrString, tasks ...placementv1beta1.StageTask) []placementv1beta1.StageConfig {
		var all []placementv1beta1.StageConfig
		for _, zone := range zones {
			all = append(all, placementv1beta1.StageConfig{Name: "zone" + zone, LabelSelector: inZone(zone), MaxConcurrency: &most,
				AfterStageTasks: tasks})
		}
		return all
	}
	soak := placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: 3 * time.Second}}
	for name, stages := range map[string][]placementv1beta1.StageConfig{
		"zones": stages(intstr.FromString("50%"), soak),
		"gated": stages(intstr.FromInt32(2), soak, placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeApproval}),
		"wide":  {{Name: "everywhere", MaxConcurrency: new(intstr.FromInt32(5))}},
	} {
		strategy := &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: placementv1beta1.UpdateStrategySpec{Stages: stages}}
		if err := w.Hub.Create(ctx, strategy); err != nil {
			return fmt.Errorf("making strategy %s: %w", name, err)
		}
	}
	return nil
}

// approveAll approves whatever waits for it.
func (w *world) approveAll(ctx context.Context) error {
	var requests placementv1beta1.ClusterApprovalRequestList
	if err := retry(ctx, func() error { return w.Hub.List(ctx, &requests) }); err != nil {
		return err
	}
	for i := range requests.Items {
		request := &requests.Items[i]
		if meta.FindStatusCondition(request.Status.Conditions, placementv1beta1.ConditionTypeApproved) != nil ||
			!request.DeletionTimestamp.IsZero() {
			continue
		}
		err := retry(ctx, func() error {
			if err := w.Hub.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
				return client.IgnoreNotFound(err)
			}
			meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
				Type: placementv1beta1.ConditionTypeApproved, Status: metav1.ConditionTrue, Reason: "soak", ObservedGeneration: request.Generation,
			})
			return client.IgnoreNotFound(w.Hub.Status().Update(ctx, request))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// steerRuns has the runs of a placement stop or go on.
func (w *world) steerRuns(ctx context.Context, placement string, state placementv1beta1.UpdateRunState) error {
	runs, err := w.runsOf(ctx, placement)
	if err != nil {
		return err
	}
	for i := range runs {
		if rules.IsRunOver(&runs[i]) {
			continue
		}
		if err := edit(ctx, w, &runs[i], func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = state }); err != nil {
			return err
		}
	}
	return nil
}

// forget deletes the newest run of a placement, whether it is over or not.
func forget(ctx context.Context, w *world, now step) error {
	runs, err := w.runsOf(ctx, now.Target)
	if err != nil || len(runs) == 0 {
		return err
	}
	return w.remove(ctx, &runs[len(runs)-1])
}

// evict asks for a cluster to be taken from a placement, unless the placement names its clusters: then that is refused.
func evict(ctx context.Context, w *world, now step) error {
	p := placementNamed(now.Target)
	err := retry(ctx, func() error { return w.Hub.Get(ctx, client.ObjectKeyFromObject(p), p) })
	if err != nil || !p.DeletionTimestamp.IsZero() || p.Spec.Policy.PlacementType == placementv1beta1.PickFixedPlacementType {
		return client.IgnoreNotFound(err) // users cannot evict there
	}
	e := &placementv1beta1.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", now.Target, time.Now().UnixNano())},
		Spec:       placementv1beta1.PlacementEvictionSpec{PlacementName: now.Target, ClusterName: now.Kind},
	}
	return retry(ctx, func() error {
		if err := w.Hub.Create(ctx, e.DeepCopy()); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
}

func budget(ctx context.Context, w *world, now step) error {
	b := &placementv1beta1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: now.Target}}
	b.Spec.MinAvailable = new(intstr.FromInt32(int32(now.N / 2)))
	return retry(ctx, func() error {
		if err := w.Hub.Create(ctx, b.DeepCopy()); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
}

func hold(ctx context.Context, w *world, now step) error {
	h := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: now.Target},
		Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "the soak stops the line"}}
	if now.Kind != "" {
		h.Spec.ClusterSelector = inZone(now.Kind)
	}
	return retry(ctx, func() error {
		if err := w.Hub.Create(ctx, h.DeepCopy()); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
}

// shut makes a window in which nothing starts; an hour of it is longer than any soak waits for.
func shut(ctx context.Context, w *world, now step) error {
	at := func(d time.Duration) string { return time.Now().UTC().Add(d).Format("2006-01-02T15:04") }
	win := &fleetflowv1alpha1.RolloutWindow{ObjectMeta: metav1.ObjectMeta{Name: now.Target}, Spec: fleetflowv1alpha1.RolloutWindowSpec{
		Type: fleetflowv1alpha1.WindowDeny, Scope: fleetflowv1alpha1.WindowFleet, TimeZone: "UTC", Message: "the soak has shut it",
		Dates: []fleetflowv1alpha1.DatedOpening{{Start: at(-time.Minute), End: at(time.Hour)}},
	}}
	if now.Kind != "" {
		win.Spec.Scope = fleetflowv1alpha1.WindowCluster
		win.Spec.ClusterSelector = inZone(now.Kind)
	}
	return retry(ctx, func() error {
		if err := w.Hub.Create(ctx, win.DeepCopy()); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
}

// rest lets time pass: a soak is made of it.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// play does one step after the other until the time is over.
func (w *world) play(ctx context.Context, b *bundle, s *script) error {
	for ctx.Err() == nil {
		now := s.next()
		now.At = time.Since(w.began).Round(time.Millisecond)
		doing := context.WithoutCancel(ctx) // what has begun is brought to its end
		if err := acts[now.Verb](doing, w, now); err != nil {
			now.Problem = err.Error()
			w.note(now, err)
		}
		if err := b.addStep(now); err != nil {
			return fmt.Errorf("keeping a step: %w", err)
		}
		rest(ctx, now.Pause)
	}
	return nil
}

// note keeps what the API server has refused: no step of the scripts is wrong.
func (w *world) note(now step, err error) {
	var status apierrors.APIStatus
	if errors.As(err, &status) && !apierrors.IsNotFound(err) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refusals = append(w.refusals, fmt.Sprintf("%s %s: %v", now.Verb, now.Target, err))
	}
}

// heal ends everything that keeps what is asked for from coming about.
func (w *world) heal(ctx context.Context, hollowMembers []string) error {
	if err := w.Control.WaitReady(ctx, w.components...); err != nil {
		return err
	}
	if err := w.hollow.Behave(ctx, hollow.Behaviour{}, hollowMembers...); err != nil {
		return err
	}
	if err := w.finishUpgrade(ctx); err != nil {
		return err
	}
	for i := range obstacles {
		if err := acts["release"](ctx, w, step{Target: holdName(i)}); err != nil {
			return err
		}
		if err := acts["open"](ctx, w, step{Target: windowName(i)}); err != nil {
			return err
		}
	}
	var placements placementv1beta1.ClusterResourcePlacementList
	if err := retry(ctx, func() error { return w.Hub.List(ctx, &placements) }); err != nil {
		return err
	}
	for i := range placements.Items {
		if err := w.setPaused(ctx, placements.Items[i].Name, false); err != nil {
			return err
		}
	}
	return nil
}

// runningOf returns the components that run; the fleet has others that are started on demand, as its Prometheus is.
func runningOf(status *control.Status) []string {
	var running []string
	for _, component := range status.Components {
		if component.State != control.Stopped {
			running = append(running, component.Name)
		}
	}
	return running
}

// finishUpgrade has every agent run the new build.
func (w *world) finishUpgrade(ctx context.Context) error {
	if w.upgrade == nil {
		return nil
	}
	agents := []string{beside, controlplane.HubAgent}
	for _, member := range w.Fleet.MemberNames() {
		agents = append(agents, controlplane.MemberAgent(member))
	}
	for _, agent := range agents {
		if err := w.upgrade.exchange(ctx, w, agent, theNew); err != nil {
			return fmt.Errorf("upgrading %s: %w", agent, err)
		}
	}
	return nil
}

// members returns the joined member clusters, by name.
func (w *world) members(ctx context.Context) (map[string]*clusterv1beta1.MemberCluster, error) {
	var list clusterv1beta1.MemberClusterList
	if err := w.Hub.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the member clusters: %w", err)
	}
	joined := map[string]*clusterv1beta1.MemberCluster{}
	for i := range list.Items {
		m := &list.Items[i]
		if m.DeletionTimestamp.IsZero() && meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1beta1.ConditionTypeJoined) {
			joined[m.Name] = m
		}
	}
	return joined, nil
}

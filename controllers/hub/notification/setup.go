package notification

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/hubread"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
)

// Teller has records told as rules ask for it.
type Teller struct {
	// Client reads from the cache, and writes statuses.
	Client client.Client
	Sender *Sender
	Routes delivery.Routes
	Events events.EventRecorder
	Clock  clock.PassiveClock

	mu   sync.Mutex
	seen channelsSeen
	// channels looks after channels, and notes under the same lock what became of messages.
	channels *channelReconciler
	// routes are the versions of those that the engine knows, and told the records of batches of which a part has arrived.
	routes map[delivery.Key]string
	told   map[delivery.Key]*toldRecords
	// rules are those that were read, by their UID, and firstSeen is when a rule was first seen as it is, by its UID and generation.
	rules     map[types.UID]followed
	firstSeen map[string]time.Time
	// reported are the problems of rules that there was an event of.
	reported map[string]bool
	// isServed is whether the hub has rules and channels.
	isServed bool
	// unserved are the ways that wait for their place, as the statuses of rules tell it.
	unserved map[delivery.Key]bool
	// setting has one at a time change the routes.
	setting sync.Mutex
	woken   chan event.TypedGenericEvent[client.Object]
	// all has every rule be looked at: a way is served, or is not any more.
	all chan event.TypedGenericEvent[client.Object]
}

// followed is a rule as it was read last: rule is nil if it never could be followed, and problem says why it cannot be as it is.
type followed struct {
	generation int64
	rule       *Rule
	problem    *Problem
}

// wakes is how many channels may wait to be looked at after a message.
const wakes = 1024

// NewTeller makes a Teller.
func NewTeller(c client.Client, sender *Sender, routes delivery.Routes, recorder events.EventRecorder, clk clock.PassiveClock) *Teller {
	t := &Teller{
		Client: c, Sender: sender, Routes: routes, Events: recorder, Clock: clk,
		seen: channelsSeen{
			versions: map[string]string{}, routed: map[string]string{}, outcomes: map[string]outcome{}, refused: map[delivery.Key]outcome{},
			again: map[string]int{},
		},
		routes: map[delivery.Key]string{}, told: map[delivery.Key]*toldRecords{}, rules: map[types.UID]followed{}, firstSeen: map[string]time.Time{},
		reported: map[string]bool{}, woken: make(chan event.TypedGenericEvent[client.Object], wakes),
		unserved: map[delivery.Key]bool{}, all: make(chan event.TypedGenericEvent[client.Object], 1),
	}
	t.channels = &channelReconciler{client: c, sender: sender, events: recorder, clock: clk, mu: &t.mu, seen: &t.seen, setRoutes: t.setRoutes}
	return t
}

// SetupWithManager registers what looks after rules and channels, if the hub serves the kinds.
func (t *Teller) SetupWithManager(mgr ctrl.Manager) error {
	for _, kind := range []string{"NotificationRule", "NotificationChannel"} {
		_, err := mgr.GetRESTMapper().RESTMapping(fleetflowv1alpha1.GroupVersion.WithKind(kind).GroupKind(), fleetflowv1alpha1.GroupVersion.Version)
		if meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("asking whether the hub serves the kind %s: %w", kind, err)
		}
	}
	t.isServed = true
	t.Routes.OnChange(RouteKind, t.noteService)
	changed := predicate.GenerationChangedPredicate{}
	err := ctrl.NewControllerManagedBy(mgr).Named("notification-channel").
		For(&fleetflowv1alpha1.NotificationChannel{}, builder.WithPredicates(predicate.Or(changed, predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(source.Channel(t.woken, &handler.EnqueueRequestForObject{})).
		Complete(reconcile.Func(t.channels.Reconcile))
	if err != nil {
		return err
	}
	if err := newReminder(t.Client, t.Sender.Client.Live, t.Clock, t).setupWithManager(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("notification-rule").
		For(&fleetflowv1alpha1.NotificationRule{}, builder.WithPredicates(changed)).
		Watches(&fleetflowv1alpha1.NotificationChannel{}, handler.EnqueueRequestsFromMapFunc(t.requestRules), builder.WithPredicates(changed)).
		WatchesRawSource(source.Channel(t.all, handler.EnqueueRequestsFromMapFunc(t.requestRules))).
		Complete(reconcile.Func(t.ReconcileRule))
}

// Before returns an engine that begins once it knows all ways from rules to channels that there are: one that knew a part of them would take
// records for complete that others are to get.
func (t *Teller) Before(engine manager.Runnable) manager.Runnable {
	return &prepared{t, engine}
}

// prepared is an engine that knows the ways from rules to channels.
type prepared struct {
	teller *Teller
	engine manager.Runnable
}

// NeedLeaderElection has only the agent that leads deliver.
func (p *prepared) NeedLeaderElection() bool { return true }

// Start delivers until the context ends.
func (p *prepared) Start(ctx context.Context) error {
	if p.teller.isServed {
		if err := p.teller.setRoutes(ctx); err != nil {
			return err
		}
	}
	return p.engine.Start(ctx)
}

// noteService has the rules be looked at if a way is served that was not, or the other way round.
func (t *Teller) noteService(way string) {
	key := delivery.Key{Kind: RouteKind, Name: way}
	isUnserved := t.Routes.Report(key).Unserved
	t.mu.Lock()
	isOther := t.unserved[key] != isUnserved
	if delete(t.unserved, key); isUnserved {
		t.unserved[key] = true
	}
	t.mu.Unlock()
	if !isOther {
		return
	}
	select {
	case t.all <- event.TypedGenericEvent[client.Object]{Object: &fleetflowv1alpha1.NotificationRule{}}:
	default: // they will be looked at
	}
}

// unservedOf returns the channels to which nothing goes by a rule, as there are too many destinations.
func (t *Teller) unservedOf(rule *fleetflowv1alpha1.NotificationRule) (channels []string) {
	for _, name := range rule.ChannelNames() {
		if t.Routes.Report(keyOf(rule.Name, name)).Unserved {
			channels = append(channels, name)
		}
	}
	return channels
}

// requestRules requests every rule: a channel has come, has gone or is another one.
func (t *Teller) requestRules(ctx context.Context, _ client.Object) []reconcile.Request {
	var all fleetflowv1alpha1.NotificationRuleList
	if err := t.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache always answers once it has started
	}
	var requests []reconcile.Request
	for i := range all.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
	}
	return requests
}

// ReconcileRule looks at one rule, and at the ways from all rules to channels.
func (t *Teller) ReconcileRule(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if err := t.setRoutes(ctx); err != nil {
		return reconcile.Result{}, err
	}
	rule := &fleetflowv1alpha1.NotificationRule{}
	if err := t.Client.Get(ctx, request.NamespacedName, rule); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	channels, err := t.channelNames(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	status := *rule.Status.DeepCopy()
	status.SinceTime = &metav1.Time{Time: t.sinceOf(rule)}
	accepted, ready := judgeRule(rule, t.follow(rule).problem, channels, t.unservedOf(rule))
	changed := !status.SinceTime.Equal(rule.Status.SinceTime)
	changed = put(&status.Conditions, accepted, rule.Generation, t.Clock.Now()) || changed
	if !put(&status.Conditions, ready, rule.Generation, t.Clock.Now()) && !changed {
		return reconcile.Result{}, nil
	}
	if err := fence.ReplaceStatus(ctx, t.Client, rule, status); err != nil {
		return reconcile.Result{}, err
	}
	if isFalseAnew(rule.Status.Conditions, ready) {
		t.Events.Eventf(rule, nil, corev1.EventTypeWarning, "RuleNotReady", "Observe", "%s", ready.Message)
	}
	return reconcile.Result{}, nil
}

// judgeRule returns the conditions of a rule.
func judgeRule(rule *fleetflowv1alpha1.NotificationRule, problem *Problem, channels map[string]bool, unserved []string) (accepted, ready metav1.Condition) {
	if problem != nil {
		return conditionOn(fleetflowv1alpha1.ConditionTypeAccepted, "", "", problem), conditionOn(fleetflowv1alpha1.ConditionTypeReady, "", "", problem)
	}
	var missing []string
	for _, name := range rule.ChannelNames() {
		if !channels[name] {
			missing = append(missing, name)
		}
	}
	switch {
	case len(missing) > 0:
		problem = &Problem{fleetflowv1alpha1.ReasonUnknownChannel, fmt.Sprintf("There is no NotificationChannel %s: nothing is told there", strings.Join(missing, ", "))}
	case len(unserved) > 0:
		problem = &Problem{fleetflowv1alpha1.ReasonTooManyDestinations, fmt.Sprintf("%s: what is for %s waits", fleetflowv1alpha1.TooManyDestinations(), strings.Join(unserved, ", "))}
	}
	return conditionOn(fleetflowv1alpha1.ConditionTypeAccepted, fleetflowv1alpha1.ReasonAccepted, "The rule can be followed", nil),
		conditionOn(fleetflowv1alpha1.ConditionTypeReady, fleetflowv1alpha1.ReasonRuleReady, "The channels of the rule are there", problem)
}

func conditionOn(kind, reason, message string, problem *Problem) metav1.Condition {
	if problem != nil {
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: problem.Reason, Message: problem.Text}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func put(conditions *[]metav1.Condition, condition metav1.Condition, generation int64, now time.Time) (changed bool) {
	condition.ObservedGeneration = generation
	condition.LastTransitionTime = metav1.NewTime(now)
	return meta.SetStatusCondition(conditions, condition)
}

// isFalseAnew reports whether a condition is False for another reason than it was.
func isFalseAnew(before []metav1.Condition, condition metav1.Condition) bool {
	told := meta.FindStatusCondition(before, condition.Type)
	return condition.Status == metav1.ConditionFalse && (told == nil || told.Reason != condition.Reason)
}

// channelNames returns the names of the channels that there are.
func (t *Teller) channelNames(ctx context.Context) (map[string]bool, error) {
	var all fleetflowv1alpha1.NotificationChannelList
	if err := t.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the notification channels: %w", err)
	}
	names := make(map[string]bool, len(all.Items))
	for i := range all.Items {
		names[all.Items[i].Name] = true
	}
	return names, nil
}

// setRoutes has the engine know the ways from rules to channels, as they are now.
func (t *Teller) setRoutes(ctx context.Context) error {
	t.setting.Lock()
	defer t.setting.Unlock()
	var all fleetflowv1alpha1.NotificationRuleList
	if err := t.Client.List(ctx, &all); err != nil {
		return fmt.Errorf("listing the notification rules: %w", err)
	}
	var rules []*Rule
	there := map[types.UID]bool{}
	for i := range all.Items {
		there[all.Items[i].UID] = true
		if of := t.follow(&all.Items[i]); of.rule != nil {
			rules = append(rules, of.rule)
		}
	}
	channels, err := t.channelNames(ctx)
	if err != nil {
		return err
	}
	lasting := context.WithoutCancel(ctx)
	keep := map[delivery.Key]bool{}
	for _, way := range wantedRoutes(rules, channels) {
		keep[way.key] = true
		if route, isNew := t.routeOf(lasting, way); isNew {
			t.Routes.Put(route)
		}
	}
	for _, key := range t.forget(keep, there) {
		t.Routes.Remove(key)
	}
	return nil
}

// follow reads a rule, once as long as it stays as it is. What waits for it as it was is not lost, also if it cannot be followed any more.
func (t *Teller) follow(rule *fleetflowv1alpha1.NotificationRule) followed {
	since := t.sinceOf(rule)
	t.mu.Lock()
	defer t.mu.Unlock()
	before, is := t.rules[rule.UID]
	if is && rule.Generation <= before.generation {
		return before
	}
	next := followed{generation: rule.Generation}
	next.rule, next.problem = Compile(rule.DeepCopy())
	if next.rule == nil && before.rule != nil {
		next.rule = before.rule.broken(rule)
	}
	if next.rule != nil {
		next.rule.Since = since
		next.rule = next.rule.follow(before.rule)
	}
	t.rules[rule.UID] = next
	return next
}

// sinceOf returns from when on records are told by a rule: from when it was created or, as it is now, was first seen.
func (t *Teller) sinceOf(rule *fleetflowv1alpha1.NotificationRule) time.Time {
	accepted := meta.FindStatusCondition(rule.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted)
	switch {
	case accepted == nil || rule.Status.SinceTime == nil:
		return rule.CreationTimestamp.Time
	case accepted.ObservedGeneration == rule.Generation:
		return rule.Status.SinceTime.Time
	}
	key := fmt.Sprintf("%s %d", rule.UID, rule.Generation)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.firstSeen[key].IsZero() {
		t.firstSeen[key] = t.Clock.Now().Truncate(time.Second)
	}
	return t.firstSeen[key]
}

// routeOf returns a way as the engine takes it, and whether it does not know it as it is.
func (t *Teller) routeOf(ctx context.Context, way wanted) (route delivery.Route, isNew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	version := way.version(fmt.Sprintf("%s %d", t.seen.versions[way.channel], t.seen.again[way.channel]))
	if t.routes[way.key] == version {
		return route, false
	}
	t.routes[way.key] = version
	delete(t.seen.refused, way.key) // it is tried again
	if t.told[way.key] == nil {
		t.told[way.key] = &toldRecords{names: map[string]bool{}}
	}
	group := way.rule.EffectiveGroup()
	find := hubread.PlacementOf(ctx, t.Client)
	return delivery.Route{
		Key: way.key, Version: version, Since: way.rule.CreationTimestamp.Time, Batch: maxBatch, Collect: max(group.Window.Duration, leastCollect), Together: true, Patience: patience,
		Wants: func(record *fleetflowv1alpha1.AuditRecord) (bool, error) {
			of, _, err := find(record)
			return err == nil && way.tells(ctx, record, of, t.report), err
		},
		To: &destination{
			rule: way.rule, told: t.told[way.key], problem: t.report,
			send: func(ctx context.Context, channel *fleetflowv1alpha1.NotificationChannel, message *Message) error {
				return t.send(ctx, way.key, channel, message)
			},
			channel: func(ctx context.Context) (*fleetflowv1alpha1.NotificationChannel, error) {
				channel := &fleetflowv1alpha1.NotificationChannel{}
				if err := t.Client.Get(ctx, client.ObjectKey{Name: way.channel}, channel); err != nil {
					return nil, fmt.Errorf("reading notification channel %s: %w", way.channel, err)
				}
				return channel, nil
			},
		},
	}, true
}

// leastCollect is for how long is gathered at least: a channel gets no message for each of many records.
const leastCollect = time.Second

// patience is after how long of failing a message is given up: who reads it later than that has looked elsewhere.
const patience = 72 * time.Hour

// forget forgets the ways that are not kept, and returns them; of rules, those that are not there.
func (t *Teller) forget(keep map[delivery.Key]bool, there map[types.UID]bool) (gone []delivery.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.rules, func(uid types.UID, _ followed) bool { return !there[uid] })
	for key := range t.routes {
		if !keep[key] {
			gone = append(gone, key)
			delete(t.routes, key)
			delete(t.told, key)
			delete(t.seen.refused, key)
		}
	}
	return gone
}

// report has an event say what is wrong with a rule, once as long as the rule stays as it is.
func (t *Teller) report(rule *Rule, text string) {
	key := fmt.Sprintf("%s %d", rule.UID, rule.Generation)
	t.mu.Lock()
	isNew := !t.reported[key]
	t.reported[key] = true
	t.mu.Unlock()
	if isNew {
		t.Events.Eventf(rule.NotificationRule, nil, corev1.EventTypeWarning, "RuleGivesError", "Tell", "%s", text)
	}
}

// send sends a message of a way, and has the channel's status say what became of it.
func (t *Teller) send(ctx context.Context, way delivery.Key, channel *fleetflowv1alpha1.NotificationChannel, message *Message) error {
	err := t.Sender.Send(ctx, channel, message)
	done := outcomeOf(err, t.Clock.Now())
	if _, partly := errors.AsType[*partlyError](err); partly {
		err = nil
	}
	t.channels.note(channel.Name, done, err == nil)
	if refused, is := errors.AsType[*delivery.RefusedError](err); is && !refused.Content {
		t.mu.Lock()
		t.seen.refused[way] = done
		t.mu.Unlock()
	}
	select {
	case t.woken <- event.TypedGenericEvent[client.Object]{Object: channel}:
	default: // it is looked at in a minute anyhow
	}
	return err
}

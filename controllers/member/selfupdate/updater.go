package selfupdate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

const (
	// Container is the name of the agent's container in its Pod.
	Container = "member-agent"
	// HubVariable is the environment variable with the hub's address.
	HubVariable = "HUB_SERVER_URL"
	// DefaultTimeout is how long a new setup may take until an agent has reported with it.
	DefaultTimeout = 10 * time.Minute

	stepTimeout = 30 * time.Second
	probeLimit  = 4 * time.Second
	retryAfter  = 5 * time.Second
	lookEvery   = time.Minute
	trialLook   = 10 * time.Second
)

// Options say which Deployment is the agent's own, and what the owner of the cluster allows.
type Options struct {
	// Namespace and Pod name the Pod that this process runs in; empty outside of one.
	Namespace, Pod string
	// Deployment is the agent's own, in the same namespace; empty if the hub may not change it.
	Deployment string
	// HubURL is the address by which this process reaches the hub.
	HubURL  string
	Allowed Allowed
	Timeout time.Duration
}

// Tokens renews the agent's token for the hub.
type Tokens interface {
	// RenewBefore has a token renewed that was issued before then. It returns whether one is awaited, and why the token
	// cannot be renewed; empty if it can.
	RenewBefore(then time.Time) (pending bool, obstacle string)
}

// Updater keeps the agent's own Deployment as the hub asks. It works in the agent that leads.
type Updater struct {
	options Options
	member  kubernetes.Interface
	tokens  Tokens
	clock   clock.Clock
	log     logr.Logger
	// TryReport sends a report to the hub that the hub only checks.
	TryReport func(context.Context) error
	// Changed is called when there is something else to be told than before. It is optional.
	Changed func()

	wakes    chan struct{}
	request  atomic.Pointer[clusterv1beta1.AgentRequest]
	reported atomic.Bool
	image    atomic.Pointer[string]
	proven   atomic.Bool
	told     atomic.Pointer[told]
}

// told is what the hub is told, and of which request.
type told struct {
	condition   metav1.Condition
	requestTime metav1.Time
}

// New returns an Updater.
func New(member kubernetes.Interface, tokens Tokens, clock clock.Clock, log logr.Logger, options Options) *Updater {
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	return &Updater{options: options, member: member, tokens: tokens, clock: clock, log: log, wakes: make(chan struct{}, 1)}
}

// Request takes what the hub asks.
func (u *Updater) Request(request *clusterv1beta1.AgentRequest) {
	if before := u.request.Swap(request.DeepCopy()); !apiequality.Semantic.DeepEqual(before, request) {
		u.Wake()
	}
}

// Reported notes that the hub has taken a report of this process.
func (u *Updater) Reported() {
	if !u.reported.Swap(true) {
		u.Wake()
	}
}

// Wake has the updater look again, as after a token was renewed.
func (u *Updater) Wake() {
	select {
	case u.wakes <- struct{}{}:
	default: // it is about to look already
	}
}

// Findings returns the conditions that the hub is to be told.
func (u *Updater) Findings() []metav1.Condition {
	if said := u.told.Load(); said != nil {
		return []metav1.Condition{said.condition}
	}
	return nil
}

// Properties returns what the hub learns about the agent's setup.
func (u *Updater) Properties() map[clusterv1beta1.PropertyName]string {
	properties := map[clusterv1beta1.PropertyName]string{clusterv1beta1.AgentHubProperty: u.options.HubURL}
	if image := u.image.Load(); image != nil {
		properties[clusterv1beta1.AgentImageProperty] = *image
	}
	if said := u.told.Load(); said != nil {
		properties[clusterv1beta1.AgentRequestProperty] = said.requestTime.UTC().Format(time.RFC3339)
	}
	return properties
}

// Start does what the hub asks until ctx ends.
func (u *Updater) Start(ctx context.Context) error {
	for {
		timer := u.clock.NewTimer(u.lookOnce(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-u.wakes:
			timer.Stop()
		case <-timer.C():
		}
	}
}

// lookOnce does once what is to be done, and returns when to look again.
func (u *Updater) lookOnce(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	again, err := u.actOnce(ctx)
	if err != nil && ctx.Err() == nil {
		u.log.Error(err, "What the hub asks of this agent is tried again")
		return retryAfter
	}
	return again
}

func (u *Updater) actOnce(ctx context.Context) (time.Duration, error) {
	request := u.request.Load()
	deployment, facts, err := u.gatherFacts(ctx, request)
	if err != nil {
		return 0, err
	}
	decision := Decide(facts, u.options.Allowed)
	if decision.Record != nil {
		if err := u.writeDecision(ctx, deployment, decision); err != nil {
			return 0, err
		}
	}
	u.tellHub(decision.Finding, request, facts.Record)
	if decision.Again > 0 {
		return min(decision.Again, trialLook), nil
	}
	return lookEvery, nil
}

// gatherFacts reads what is decided on.
func (u *Updater) gatherFacts(ctx context.Context, request *clusterv1beta1.AgentRequest) (*appsv1.Deployment, Facts, error) {
	facts := Facts{
		Request: request, Reported: u.reported.Load(), Timeout: u.options.Timeout, Now: u.clock.Now(),
		Self: Setup{HubURL: u.options.HubURL},
	}
	if request != nil && request.RenewToken {
		facts.Token.Pending, facts.Token.Obstacle = u.tokens.RenewBefore(request.RequestTime.Time)
	}
	image, err := u.ownImage(ctx)
	if err != nil {
		return nil, facts, err
	}
	facts.Self.Image = image
	if u.options.Deployment == "" || image == "" {
		facts.Template = facts.Self
		facts.Obstacle = "The owner of this cluster does not let the hub change the agent (selfUpdate.enabled of the agent's chart), " +
			"or the agent runs in no Pod: upgrade its chart on the cluster"
		return nil, facts, nil
	}
	deployment, err := u.member.AppsV1().Deployments(u.options.Namespace).Get(ctx, u.options.Deployment, metav1.GetOptions{})
	if err != nil {
		return nil, facts, fmt.Errorf("reading the agent's own Deployment %s/%s: %w", u.options.Namespace, u.options.Deployment, err)
	}
	facts.Obstacle = obstacleIn(deployment)
	facts.Template = setupOf(deployment.Spec.Template.Spec)
	facts.Record, err = recordOf(deployment)
	return deployment, facts, err
}

// ownImage returns the image of the Pod that this process runs in; empty outside of one.
func (u *Updater) ownImage(ctx context.Context) (string, error) {
	if known := u.image.Load(); known != nil {
		return *known, nil
	}
	if u.options.Pod == "" {
		return "", nil
	}
	pod, err := u.member.CoreV1().Pods(u.options.Namespace).Get(ctx, u.options.Pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil // it runs outside of a Pod
	}
	if err != nil {
		return "", fmt.Errorf("reading the agent's own Pod %s/%s: %w", u.options.Namespace, u.options.Pod, err)
	}
	image := setupOf(pod.Spec).Image
	if image != "" {
		u.image.Store(&image)
		u.callChanged()
	}
	return image, nil
}

func (u *Updater) callChanged() {
	if u.Changed != nil {
		u.Changed()
	}
}

// tellHub keeps what the hub is to be told.
func (u *Updater) tellHub(condition *metav1.Condition, request *clusterv1beta1.AgentRequest, record *Record) {
	var now *told
	if condition != nil {
		now = &told{condition: *condition}
		switch {
		case record != nil && record.Phase == PhaseTrial:
			now.requestTime = record.RequestTime
		case request != nil:
			now.requestTime = request.RequestTime
		}
	}
	before := u.told.Swap(now)
	if before == nil && now == nil || before != nil && now != nil && before.condition == now.condition &&
		before.requestTime.Equal(&now.requestTime) {
		return
	}
	u.callChanged()
}

// writeDecision writes the setup and the record together, unless the Deployment has changed since it was read.
func (u *Updater) writeDecision(ctx context.Context, deployment *appsv1.Deployment, decision Decision) error {
	record, err := json.Marshal(decision.Record)
	if err != nil {
		return fmt.Errorf("encoding what is noted on the agent's Deployment: %w", err)
	}
	change := map[string]any{"metadata": map[string]any{
		"resourceVersion": deployment.ResourceVersion,
		"annotations":     map[string]string{clusterv1beta1.AgentRequestAnnotation: string(record)},
	}}
	if to := decision.Template; to != nil {
		container := map[string]any{"name": Container, "image": to.Image}
		if to.HubURL != "" {
			container["env"] = []map[string]any{{"name": HubVariable, "value": to.HubURL}}
		}
		change["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}
	}
	patch, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encoding the change of the agent's Deployment: %w", err)
	}
	if _, err := u.member.AppsV1().Deployments(deployment.Namespace).Patch(ctx, deployment.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{FieldManager: "member-agent"}); err != nil {
		return fmt.Errorf("changing the agent's own Deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	u.log.Info("Noted on the agent's own Deployment how far the request of the hub is", "object", deployment.Namespace+"/"+deployment.Name,
		"stage", string(decision.Record.Phase), "cause", decision.Record.Message)
	return nil
}

// Ready is a readiness check. An agent that was asked for is ready once the hub has taken a report of it, on trial: until then the
// Deployment keeps the old one. It says nothing about other agents, as one whose hub is away works on.
func (u *Updater) Ready(request *http.Request) error {
	if u.options.Deployment == "" || u.options.Pod == "" || u.proven.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(request.Context(), probeLimit)
	defer cancel()
	_, facts, err := u.gatherFacts(ctx, nil)
	if err != nil {
		return err
	}
	if facts.Record == nil || facts.Record.Phase != PhaseTrial || facts.Self != facts.Record.To {
		return nil
	}
	if err := u.TryReport(ctx); err != nil {
		return fmt.Errorf("reporting to the hub on trial: %w", err)
	}
	u.proven.Store(true)
	return nil
}

// setupOf returns the setup of an agent's Pods.
func setupOf(pod corev1.PodSpec) Setup {
	var setup Setup
	for i := range pod.Containers {
		container := &pod.Containers[i]
		if container.Name != Container {
			continue
		}
		setup.Image = container.Image
		for _, variable := range container.Env {
			if variable.Name == HubVariable {
				setup.HubURL = variable.Value
			}
		}
	}
	return setup
}

// recordOf returns what is noted on the Deployment; nil if there is nothing.
func recordOf(deployment *appsv1.Deployment) (*Record, error) {
	text := deployment.Annotations[clusterv1beta1.AgentRequestAnnotation]
	if text == "" {
		return nil, nil
	}
	record := &Record{}
	if err := json.Unmarshal([]byte(text), record); err != nil {
		return nil, fmt.Errorf("reading the annotation %s of the agent's own Deployment (remove it, if it was changed by hand): %w",
			clusterv1beta1.AgentRequestAnnotation, err)
	}
	return record, nil
}

// obstacleIn returns why a change of the Deployment would end the old agent too early, or do nothing; empty if neither.
func obstacleIn(deployment *appsv1.Deployment) string {
	replicas := 1
	if deployment.Spec.Replicas != nil {
		replicas = max(1, int(*deployment.Spec.Replicas)) // a process outside of it is one, too
	}
	rolling := deployment.Spec.Strategy.RollingUpdate
	switch {
	case deployment.Spec.Paused:
		return "The agent's Deployment is paused on this cluster: resume it"
	case deployment.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		return "The agent's Deployment has the strategy Recreate, which ends this agent before another has reported: set updateStrategy of the agent's chart"
	case rolling == nil || rolling.MaxUnavailable == nil:
		return ""
	}
	if most, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, replicas, false); err == nil && most < replicas {
		return ""
	}
	return "The agent's Deployment lets all agents be unavailable, which ends this agent before another has reported: set maxUnavailable in updateStrategy of the agent's chart to 0"
}

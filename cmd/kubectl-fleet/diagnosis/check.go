package diagnosis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/kubefleet"
	"github.com/fleetflow/fleetflow/cmd/internal/definitions"
	"github.com/fleetflow/fleetflow/cmd/version"
)

// Weight is how much a finding matters.
type Weight string

const (
	// Error is what keeps a fleet from working.
	Error Weight = "Error"
	// Warning is what works, and should be different.
	Warning Weight = "Warning"
	// Unknown is what could not be found out.
	Unknown Weight = "Unknown"
	// OK is as it should be.
	OK Weight = "OK"
)

// Parts of an installation, in the order in which they are looked at.
const (
	partHub      = "hub"
	partAgent    = "hub agent"
	partTemporal = "temporal"
	partMembers  = "members"
	partMessages = "messages"
	partVersions = "versions"
)

const (
	// reasonNoAnswer is the reason of what the hub did not answer.
	reasonNoAnswer = "NoAnswer"
	// askReadiness is what to do about it.
	askReadiness = "kubectl get --raw '/readyz?verbose' says what the API server lacks, such as its etcd; if it does not answer either, it or the way to it is down. --request-timeout sets how long is waited"
)

// Finding is something to know about an installation.
type Finding struct {
	// Part of the installation: hub, hub agent, temporal, members, messages or versions.
	Part   string `json:"part"`
	Weight Weight `json:"weight"`
	// Reason is for scripts; empty with OK.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message"`
	// Remedy is what to do about it.
	Remedy string `json:"remedy,omitempty"`
	// Pod is the one that has not started, as namespace/name; empty in what is found of other objects.
	Pod string `json:"-"`
}

// Versions are those of the parts; empty if not known.
type Versions struct {
	Plugin  string `json:"plugin"`
	Kubectl string `json:"kubectl,omitempty"`
	// Hub is the version of the hub's API server.
	Hub      string `json:"hub,omitempty"`
	HubAgent string `json:"hubAgent,omitempty"`
	// MemberAgents are the versions of member agents by the names of their clusters.
	MemberAgents map[string]string `json:"memberAgents,omitempty"`
}

// Report is what a check has found.
type Report struct {
	Versions Versions  `json:"versions"`
	Findings []Finding `json:"findings"`
}

// Has reports whether there are findings of a weight.
func (r *Report) Has(weight Weight) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Weight == weight })
}

const (
	// joinGrace is how long a cluster may take to join before that is worth a word.
	joinGrace = 2 * time.Minute
	// startGrace is how long a Pod may take to start before that is worth a word.
	startGrace = 2 * time.Minute
	// missedBeats is how many heartbeats of a member may be missing.
	missedBeats = 3
	// defaultHeartbeat is the period of a member that names none.
	defaultHeartbeat = time.Minute
	// bundledMembers and bundledRuns are what the bundled Temporal is meant for.
	bundledMembers = 500
	bundledRuns    = 300
)

type checker struct {
	*Facts
	report *Report
	now    time.Time
}

// Check returns what is right and what is wrong with an installation.
func Check(facts *Facts, now time.Time) *Report {
	c := &checker{Facts: facts, report: &Report{}, now: now}
	c.report.Versions = Versions{Plugin: facts.Plugin, Kubectl: facts.Kubectl, Hub: facts.Kubernetes, HubAgent: c.agentVersion(),
		MemberAgents: map[string]string{}}
	if facts.Silent != nil {
		c.reportSilence()
		return c.report
	}
	if len(c.Unanswered) > 0 {
		c.addFinding(partHub, Error, reasonNoAnswer, strings.Join(c.Unanswered, "; ")+c.countWaited(), askReadiness)
	}
	if len(c.Leases) > 0 || len(c.Deployments) > 0 || c.KubeFleetLease != nil || c.Served > 0 {
		c.checkHub()
		c.checkAgent()
		c.checkTemporal()
		c.checkMembers()
		c.checkMessages()
	} else {
		c.addFinding(partHub, Error, "NoHub", "this cluster is no hub: it serves none of the fleet's kinds",
			"choose the context of the hub with --context, or make this cluster one with: kubectl fleet init")
	}
	c.checkVersions()
	for _, unread := range c.Unread {
		c.addFinding(partHub, Unknown, "NotReadable", unread, "ask an administrator to bind you the roles hub-agent-viewer, for the objects of the fleet and its leases, and view, for Deployments and Pods: deploy/docs/roles.md")
	}
	return c.report
}

// reportSilence says that nothing is known, as the API server does not answer.
func (c *checker) reportSilence() {
	c.addFinding(partHub, Error, reasonNoAnswer, c.Silent.Error(), askReadiness)
	for _, part := range []string{partAgent, partTemporal, partMembers, partMessages} {
		c.addFinding(part, Unknown, reasonNoAnswer, "not known, as the hub does not answer", "")
	}
}

// countWaited counts and names, as an addition to a sentence, what the API server does not answer either.
func (c *checker) countWaited() string {
	if len(c.Waited) == 0 {
		return ""
	}
	return fmt.Sprintf("; nor has it answered %d further read(s): %s", len(c.Waited), strings.Join(c.Waited, ", "))
}

func (c *checker) addFinding(part string, weight Weight, reason, message, remedy string) {
	c.report.Findings = append(c.report.Findings, Finding{Part: part, Weight: weight, Reason: reason, Message: message, Remedy: remedy})
}

// addGood says that a part is as it should be.
func (c *checker) addGood(part, format string, args ...any) {
	c.addFinding(part, OK, "", fmt.Sprintf(format, args...), "")
}

func (c *checker) checkHub() {
	switch {
	case len(c.Missing) == 0:
		c.addGood(partHub, "Kubernetes %s serves all %d kinds of the fleet", orUnknown(c.Kubernetes), c.Served)
	case c.missesOwn() && c.runsKubeFleet():
		c.addGood(partHub, "Kubernetes %s serves all kinds of KubeFleet, which runs this hub", orUnknown(c.Kubernetes))
	default:
		c.addFinding(partHub, Error, "KindsMissing", fmt.Sprintf("the hub serves %d kinds of the fleet, and %d not: %s", c.Served, len(c.Missing),
			strings.Join(c.Missing, ", ")),
			"the definitions are of an older version, or were deleted; Helm never upgrades them: "+definitions.Remedy)
	}
	c.checkFields()
}

// checkFields says which fields the hub drops. A hub agent of the version of this program does nothing then; an older one may know no
// more fields than the definitions have.
func (c *checker) checkFields() {
	if len(c.Lacking) == 0 || c.runsKubeFleet() {
		return
	}
	weight := Error
	if of := c.agentVersion(); of != "" && of != c.Plugin {
		weight = Warning
	}
	for _, gap := range c.Lacking {
		c.addFinding(partHub, weight, "FieldsMissing", "the hub drops fields that the definition of their kind lacks: "+gap.String(),
			"the definition is KubeFleet's, or of an older version, and no hub agent of this version works until it has them: "+definitions.Remedy)
	}
}

// runsKubeFleet reports whether KubeFleet's hub agent works here, and none of fleetflow.
func (c *checker) runsKubeFleet() bool { return c.isHeld(c.KubeFleetLease) && len(c.heldLeases()) == 0 }

func (c *checker) isHeld(lease *coordinationv1.Lease) bool {
	return (kubefleet.Hold{}).Observe(lease, c.now).IsHeld(c.now)
}

// heldLeases returns the leases that a hub agent holds now.
func (c *checker) heldLeases() []coordinationv1.Lease {
	var held []coordinationv1.Lease
	for i := range c.Leases {
		if c.isHeld(&c.Leases[i]) {
			held = append(held, c.Leases[i])
		}
	}
	return held
}

// agentVersion returns the version of the hub agent that leads, or else that of its Deployment; empty if it is not known.
func (c *checker) agentVersion() string {
	for _, lease := range c.heldLeases() {
		if of := lease.Labels[version.Label]; of != "" {
			return of
		}
	}
	for i := range c.Deployments {
		if of := c.Deployments[i].Labels[version.Label]; of != "" {
			return of
		}
	}
	return ""
}

func (c *checker) checkAgent() {
	held := c.heldLeases()
	switch {
	case c.runsKubeFleet():
		c.addGood(partAgent, "KubeFleet's holds its lease; fleetflow's is not installed (kubectl fleet migrate check says what a move would make of this hub)")
	case c.isHeld(c.KubeFleetLease):
		c.addFinding(partAgent, Error, "KubeFleetRuns", "KubeFleet's hub agent holds its lease, so fleetflow's stands back",
			"kubectl fleet migrate check")
	case len(held) > 1:
		c.addFinding(partAgent, Error, "TwoHubAgents", "hub agents lead in "+strings.Join(namespacesOf(held), " and ")+": they undo each other's work",
			"uninstall all but one: helm list --all-namespaces --filter hub-agent")
	case len(held) == 1:
		c.addGood(partAgent, "%s, led by %s in %s", orUnknown(c.agentVersion()), (kubefleet.Hold{}).Observe(&held[0], c.now).Holder,
			held[0].Namespace)
	case c.LeasesHidden != "":
		c.addFinding(partAgent, Unknown, "NotReadable", fmt.Sprintf("whether a hub agent works is not known, as %s its lease", c.LeasesHidden), "")
	case len(c.Deployments) == 0 && len(c.Leases) == 0:
		c.addFinding(partAgent, Error, "NoHubAgent", "no hub agent is installed: nothing is rolled out", "kubectl fleet init")
	default:
		c.addFinding(partAgent, Error, "NoLeader", "no hub agent holds the lease: nothing is rolled out, and members keep what they have",
			c.describeLogs())
	}
	c.checkPods()
}

// describeLogs returns how to read what the hub agent says.
func (c *checker) describeLogs() string {
	if len(c.Deployments) == 0 {
		return "start the hub agent; it says in its log what keeps it from working"
	}
	d := &c.Deployments[0]
	return fmt.Sprintf("kubectl --namespace %s logs deployment/%s says what keeps it from working", d.Namespace, d.Name)
}

// checkPods finds Pods that have not started, and Deployments with replicas that are not ready.
func (c *checker) checkPods() {
	c.report.Findings = append(c.report.Findings, FindUnstarted(c.Pods, c.now)...)
	for _, namespace := range c.Unrestricted {
		c.addFinding(partAgent, Warning, "NamespaceNotRestricted", fmt.Sprintf("namespace %s admits privileged Pods, of which the agent needs none, unless the cluster has another default: see its label %s",
			namespace, PodSecurityLabel), fmt.Sprintf("kubectl label --overwrite namespace %s %s=%s", namespace, PodSecurityLabel, PodSecurity))
	}
	for i := range c.Deployments {
		d := &c.Deployments[i]
		wanted := int32(1)
		if d.Spec.Replicas != nil {
			wanted = *d.Spec.Replicas
		}
		if d.Status.ReadyReplicas < wanted {
			c.addFinding(partAgent, Warning, "ReplicasNotReady", fmt.Sprintf("Deployment %s/%s has %d of %d replicas ready", d.Namespace, d.Name,
				d.Status.ReadyReplicas, wanted),
				fmt.Sprintf("kubectl --namespace %s describe deployment %s", d.Namespace, d.Name))
		}
	}
}

// FindUnstarted returns what is wrong with Pods of an agent whose containers have not started. Those that are being made, or that wait for
// init containers, are given some time: after that most often a Secret or a volume is missing, which no log tells.
func FindUnstarted(pods []corev1.Pod, now time.Time) (found []Finding) {
	for i := range pods {
		found = append(found, findUnstarted(&pods[i], now)...)
	}
	return found
}

func findUnstarted(pod *corev1.Pod, now time.Time) (found []Finding) {
	say := func(reason, remedy, message string) {
		found = append(found, Finding{Part: partAgent, Weight: Error, Reason: reason, Pod: pod.Namespace + "/" + pod.Name,
			Remedy: remedy, Message: "Pod " + pod.Namespace + "/" + pod.Name + " " + message})
	}
	init := len(pod.Status.InitContainerStatuses)
	late := now.Sub(beginOf(pod))
	for i, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waits := container.State.Waiting
		switch {
		case waits == nil:
		case waits.Reason != waitsForVolumes && waits.Reason != waitsForInit:
			message := fmt.Sprintf("waits with %s: %s", waits.Reason, waits.Message)
			if i < init {
				message = "has init container " + container.Name + ", which " + message
			}
			say(waits.Reason, remedyFor(waits.Reason, pod, container), strings.TrimSuffix(message, ": "))
		case late > startGrace && len(found) == 0:
			waitsFor, remedy := describeStart(pod)
			say("NotStarted", remedy, fmt.Sprintf("has not started for %s%s", duration.HumanDuration(late), waitsFor))
			return found
		}
	}
	return found
}

// Reasons of containers that wait for what is not theirs: for volumes, or for init containers. The kubelet gives the second to all containers
// of a Pod with init containers, also while it lacks a volume.
const waitsForVolumes, waitsForInit = "ContainerCreating", "PodInitializing"

// describeStart says for which init container a Pod waits that has not started, if it waits for one that runs or has ended, and what to do.
func describeStart(pod *corev1.Pod) (waitsFor, remedy string) {
	for _, container := range pod.Status.InitContainerStatuses {
		logs := fmt.Sprintf("kubectl --namespace %s logs %s --container %s", pod.Namespace, pod.Name, container.Name)
		staysUp := slices.ContainsFunc(pod.Spec.InitContainers, func(spec corev1.Container) bool {
			return spec.Name == container.Name && spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
		})
		ended := container.State.Terminated
		switch {
		case container.State.Running != nil && staysUp && container.Started != nil && *container.Started:
		case container.State.Running != nil && staysUp:
			return fmt.Sprintf(": its init container %s runs, and has not passed its startup probe", container.Name), logs
		case container.State.Running != nil:
			return fmt.Sprintf(": its init container %s has not ended", container.Name), logs
		case ended != nil && ended.ExitCode == 0 && !staysUp:
		case ended != nil:
			return strings.TrimSuffix(fmt.Sprintf(": its init container %s has ended with exit code %d, %s: %s", container.Name, ended.ExitCode,
				ended.Reason, ended.Message), ": "), logs
		default:
			return fmt.Sprintf(": its init container %s waits with %s", container.Name, waitingReason(container)), describePod(pod)
		}
	}
	return "", describePod(pod)
}

func waitingReason(container corev1.ContainerStatus) string {
	if container.State.Waiting == nil || container.State.Waiting.Reason == "" {
		return "no reason"
	}
	return container.State.Waiting.Reason
}

func describePod(pod *corev1.Pod) string {
	return fmt.Sprintf("kubectl --namespace %s describe pod %s says what it waits for, such as a Secret that is not there", pod.Namespace, pod.Name)
}

// beginOf returns when a Pod that is not ready was made, or was ready last: its node may have begun anew since.
func beginOf(pod *corev1.Pod) time.Time {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.LastTransitionTime.After(pod.CreationTimestamp.Time) {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

func remedyFor(reason string, pod *corev1.Pod, container corev1.ContainerStatus) string {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName":
		return fmt.Sprintf("the cluster does not get the image %s: push it there, or name another with --set image.repository=… --set image.tag=… (helm upgrade, kubectl fleet init or join)", container.Image)
	default:
		return fmt.Sprintf("kubectl --namespace %s logs %s --container %s --previous", pod.Namespace, pod.Name, container.Name)
	}
}

func (c *checker) checkTemporal() {
	switch {
	case c.runsKubeFleet():
	case len(c.Waiting) > 0:
		c.addFinding(partTemporal, Error, "EngineUnreachable", fmt.Sprintf(
			"the hub agent does not reach Temporal; placements and runs that wait for it: %d, the first is %s", len(c.Waiting), c.Waiting[0]),
			startTemporal)
	case c.LeasesHidden != "":
		c.addFinding(partTemporal, Unknown, "NotReadable", fmt.Sprintf("whether Temporal can be reached is not known, as %s what the hub agent notes on its lease", c.LeasesHidden), "")
	case len(c.heldLeases()) == 0:
		c.addFinding(partTemporal, Unknown, "NoHubAgent", "whether Temporal can be reached is not known, as no hub agent works", "")
	default:
		for _, lease := range c.heldLeases() {
			c.checkNoted(lease.Namespace)
		}
	}
}

// checkNoted says what the hub agent in a namespace has noted of Temporal.
func (c *checker) checkNoted(namespace string) {
	at := slices.IndexFunc(c.TemporalLeases, func(l coordinationv1.Lease) bool { return l.Namespace == namespace })
	if at < 0 {
		c.addFinding(partTemporal, Unknown, "NotReported", "whether Temporal can be reached is not known: the hub agent does not say, as it has just begun to lead, or is of an older version", "kubectl fleet check again in half a minute; else upgrade the hub agent")
		return
	}
	note := &c.TemporalLeases[at]
	problem, failed := note.Annotations[clusterv1beta1.TemporalProblemAnnotation]
	if unverified, is := note.Annotations[clusterv1beta1.ApprovalsProblemAnnotation]; is && c.isHeld(note) && !failed {
		c.addFinding(partTemporal, Warning, "ApprovalsNotVerified", "no approval through Temporal is taken: "+unverified,
			"approve with kubectl fleet approve, or set temporal.approvals of the chart to off, which says that Temporal approves nothing")
	}
	mode := clusterv1beta1.TemporalMode(note.Annotations[clusterv1beta1.TemporalModeAnnotation])
	if mode == clusterv1beta1.TemporalBundled && (len(c.Members) > bundledMembers || c.Unfinished > bundledRuns) {
		c.addFinding(partTemporal, Warning, "BundledTemporalOutgrown", fmt.Sprintf(
			"the bundled Temporal is for up to %d clusters or %d rollouts at a time, and there are %d clusters and %d runs that have not ended",
			bundledMembers, bundledRuns, len(c.Members), c.Unfinished),
			"move to an external one, in the middle of runs if need be: deploy/docs/which-temporal.md")
	}
	which := "it"
	remedy := startTemporal
	if mode == clusterv1beta1.TemporalBundled {
		which = "the bundled one"
		remedy = fmt.Sprintf("kubectl --namespace %s logs deployment/hub-agent --container temporal says why; the kubelet starts it again", namespace)
	}
	switch {
	case !c.isHeld(note):
		c.addFinding(partTemporal, Unknown, "NotReported", fmt.Sprintf("whether Temporal can be reached is not known: the hub agent has said nothing of it for %s", c.ageOf(note.Spec.RenewTime)), c.describeLogs())
	case failed:
		c.addFinding(partTemporal, Error, "EngineUnreachable", fmt.Sprintf("the hub agent has not reached Temporal for %s: %s",
			c.ageOf(note.Spec.AcquireTime), problem), remedy)
	case c.WaitingHidden != "":
		c.addGood(partTemporal, "the hub agent reached %s %s ago", which, c.ageOf(note.Spec.RenewTime))
	default:
		c.addGood(partTemporal, "the hub agent reached %s %s ago; no placement and no run waits for it", which, c.ageOf(note.Spec.RenewTime))
	}
}

// ageOf returns how long ago a time was, as people read it.
func (c *checker) ageOf(at *metav1.MicroTime) string {
	if at == nil {
		return "an unknown time"
	}
	return duration.HumanDuration(max(0, c.now.Sub(at.Time)))
}

// startTemporal is what to do where the hub agent does not reach Temporal.
const startTemporal = "start Temporal, or correct temporal.address of the chart; the log of the hub agent has the error. What is placed stays, and all goes on by itself once Temporal answers"

func (c *checker) checkMembers() {
	joined := 0
	for i := range c.Members {
		if c.checkMember(&c.Members[i]) {
			joined++
		}
	}
	switch {
	case c.MembersHidden != "":
		c.addFinding(partMembers, Unknown, "NotReadable", fmt.Sprintf("how the members are is not known, as %s them", c.MembersHidden), "")
	case len(c.Members) == 0:
		c.addFinding(partMembers, Warning, "NoMembers", "no cluster is a member", "kubectl fleet join MEMBER --member-context CONTEXT")
	case joined > 0:
		c.addGood(partMembers, "%d of %d have joined, report and are healthy", joined, len(c.Members))
	}
}

// checkMember reports whether a member is as it should be.
func (c *checker) checkMember(m *clusterv1beta1.MemberCluster) bool {
	logs := "on the cluster: kubectl --namespace fleet-system logs deployment/member-agent"
	if of := m.Status.Properties[clusterv1beta1.AgentVersionProperty].Value; of != "" {
		c.report.Versions.MemberAgents[m.Name] = of
	}
	bad := func(weight Weight, reason, remedy, format string, args ...any) bool {
		c.addFinding(partMembers, weight, reason, m.Name+" "+fmt.Sprintf(format, args...), remedy)
		return false
	}
	silent := c.silenceOf(m)
	healthy := meta.FindStatusCondition(m.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)
	token := meta.FindStatusCondition(m.Status.Conditions, clusterv1beta1.ConditionTypeHubTokenRenewed)
	switch {
	case !m.DeletionTimestamp.IsZero():
		return bad(Warning, "Leaving", "kubectl describe membercluster "+m.Name+" says what it waits for", "has been leaving for %s",
			duration.HumanDuration(c.now.Sub(m.DeletionTimestamp.Time)))
	case !meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1beta1.ConditionTypeJoined):
		if c.now.Sub(m.CreationTimestamp.Time) < joinGrace {
			return bad(Warning, "Joining", "wait: kubectl wait --for=condition=Joined membercluster/"+m.Name, "is joining")
		}
		return bad(Error, "NotJoined", logs+"; it needs to reach the hub's API server", "has not joined%s",
			describeCause(meta.FindStatusCondition(m.Status.Conditions, clusterv1beta1.ConditionTypeJoined)))
	case silent > 0 && !c.agentWorks():
		return bad(Unknown, "NotReported", "", "reported %s ago, and it is unknown whether the hub agent works that receives the reports",
			duration.HumanDuration(silent))
	case silent > 0:
		return bad(Error, "Silent", logs+"; if its token has ended: kubectl fleet join "+m.Name+" --member-context CONTEXT",
			"has not reported for %s: what is placed there stays, and changes wait", duration.HumanDuration(silent))
	case healthy != nil && healthy.Status != metav1.ConditionTrue:
		return bad(Error, "Unhealthy", "on the cluster: kubectl get --raw '/readyz?verbose'", "is not healthy%s", describeCause(healthy))
	case token != nil && token.Status == metav1.ConditionFalse:
		return bad(Warning, "TokenNotRenewed", "kubectl fleet join "+m.Name+" --member-context CONTEXT gives it a new one",
			"does not renew its token for the hub%s", describeCause(token))
	}
	return true
}

// agentWorks reports whether a hub agent leads that hears of members.
func (c *checker) agentWorks() bool { return len(c.heldLeases()) > 0 || c.isHeld(c.KubeFleetLease) }

// silenceOf returns for how long a member should have reported and has not; zero if it reports. What counts is what the hub agent says, which
// KubeFleet's does not.
func (c *checker) silenceOf(m *clusterv1beta1.MemberCluster) time.Duration {
	if since, silent := clusterrules.SilentSince(m); silent {
		return max(c.now.Sub(since), time.Second)
	}
	period := defaultHeartbeat
	if seconds := m.Spec.HeartbeatPeriodSeconds; seconds > 0 {
		period = time.Duration(seconds) * time.Second
	}
	for _, agent := range m.Status.AgentStatus {
		if since := c.now.Sub(agent.LastReceivedHeartbeat.Time); agent.Type == clusterv1beta1.MemberAgent &&
			!agent.LastReceivedHeartbeat.IsZero() && since > missedBeats*period {
			return since
		}
	}
	return 0
}

// describeCause returns what a condition says, behind a colon.
func describeCause(condition *metav1.Condition) string {
	if condition == nil || condition.Message == "" {
		return ""
	}
	return ": " + condition.Message
}

func namespacesOf(leases []coordinationv1.Lease) []string {
	var names []string
	for i := range leases {
		names = append(names, "namespace "+leases[i].Namespace)
	}
	slices.Sort(names)
	return names
}

func orUnknown(version string) string {
	if version == "" {
		return "of unknown version"
	}
	return version
}

// sortedKeys returns the keys of a map in their order.
func sortedKeys(of map[string]string) []string { return slices.Sorted(maps.Keys(of)) }

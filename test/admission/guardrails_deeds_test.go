//go:build integration

package admission

import (
	"maps"
	"slices"
)

// The kinds that deeds are done to.
const (
	namespace           = "{apiVersion: v1, kind: Namespace}"
	configMap           = "{apiVersion: v1, kind: ConfigMap}"
	work                = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: Work}"
	oldWork             = "{apiVersion: placement.kubernetes-fleet.io/v1, kind: Work}"
	mailbox             = "{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: InternalMemberCluster}"
	memberCluster       = "{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster}"
	resourceBinding     = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceBinding}"
	namespacedBinding   = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceBinding}"
	placement           = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement}"
	namespaced          = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourcePlacement}"
	updateRun           = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun}"
	oldUpdateRun        = "{apiVersion: placement.kubernetes-fleet.io/v1alpha1, kind: ClusterStagedUpdateRun}"
	namespacedUpdateRun = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: StagedUpdateRun}"
	evictionOf          = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacementEviction}"
	approval            = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterApprovalRequest}"
	definition          = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}"

	auditRecord = `{apiVersion: fleetflow.io/v1alpha1, kind: AuditRecord, metadata: {generateName: r-}, spec: {id: "0000000000000000000000000000000000000000000000000000000000000000",
		type: run.created, time: "2026-01-01T00:00:00Z", subjectRef: {apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, name: web-2, uid: "4711"}, sequence: 1}}`

	placements = "clusterresourceplacements.placement.kubernetes-fleet.io"
	box        = "fleet-member-guarded"
)

// The half of a refusal that says why.
const (
	reserved    = "namespaces that begin with fleet- or kube-, and what is in them, are reserved for the fleet and for Kubernetes: use another namespace, or have"
	internal    = "objects of this kind are written by the agents of the fleet: change the placement, the override or the MemberCluster that this one comes from, or have"
	recorded    = "records are written by the hub agent, which deletes them after their time: leave them as they are, or have"
	concluded   = "/status, and they go by it: change the spec, or have"
	requested   = "approval requests are made, labelled and removed by the agents of the fleet: approve one with the right to update clusterapprovalrequests/status, such as by kubectl fleet approve, or have"
	defined     = "the definitions of the fleet's kinds come with the chart of the hub agent: have an administrator of the hub (system:masters) upgrade it, or have"
	reported    = "the status of a MemberCluster is written by the agents of the fleet: look at the member's agent if it is wrong, or have"
	annotated   = "annotations of a MemberCluster that begin with fleet.azure.com are not to be added, changed or removed"
	frozen      = "of the spec of a MemberCluster with annotations that begin with fleet.azure.com, only the taints are to be changed: leave the rest as it is, or have"
	ownWrites   = "the hub agent writes the namespaces of members (fleet-member-*), and roles and role bindings in them, and no others: if this was not you, its token is in other hands"
	noWorkloads = " creation is disallowed in the fleet hub cluster: place what makes it on member clusters with a ClusterResourcePlacement, or, to run it on the hub,"
)

// butTheHubAgent are these senders without the hub agent, which writes the namespaces of members and no others.
func butTheHubAgent(senders []string) []string {
	return slices.DeleteFunc(slices.Clone(senders), func(sender string) bool { return sender == "the hub agent" })
}

func deeds() map[string]deed {
	all := map[string]deed{}
	for _, part := range []map[string]deed{namespaceDeeds(), internalDeeds(), statusDeeds(), memberDeeds(), workloadDeeds()} {
		maps.Copy(all, part)
	}
	return all
}

func namespaceDeeds() map[string]deed {
	withMember := append(slices.Clone(everyUser), "the member", "its account")
	const event = `{apiVersion: v1, kind: Event, metadata: {namespace: fleet-member-guarded, name: e}, involvedObject: {namespace: fleet-member-guarded}}`
	const lease = `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: kube-system, name: cert-manager}}`
	return map[string]deed{
		"create a namespace of the fleet":          {creates(`{apiVersion: v1, kind: Namespace, metadata: {name: fleet-mine}}`), butTheHubAgent(passing), reserved},
		"create a namespace that gets its name":    {creates(`{apiVersion: v1, kind: Namespace, metadata: {generateName: kube-}}`), butTheHubAgent(inKubernetes), reserved},
		"create any other namespace":               {creates(`{apiVersion: v1, kind: Namespace, metadata: {name: my-fleet}}`), butTheHubAgent(everyUser), ""},
		"label a namespace of the fleet":           {changes(namespace, "", box, `{metadata: {labels: {a: b}}}`), passing, reserved},
		"finalize a namespace of the fleet":        {changes(namespace, "", box, `{metadata: {labels: {a: b}}}`, "finalize"), passing, reserved},
		"delete a namespace of the fleet":          {deletes(namespace, "", box), passing, reserved},
		"delete a namespace of Kubernetes":         {deletes(namespace, "", "kube-guarded"), butTheHubAgent(inKubernetes), reserved},
		"create an object in fleet-system":         {creates(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: fleet-system, name: c}}`), inKubernetes, reserved},
		"create an object in kube-system":          {creates(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: c}}`), inKubernetes, reserved},
		"change an object in kube-public":          {changes(configMap, "kube-public", "guarded", `{data: {a: b}}`), inKubernetes, reserved},
		"delete an object in kube-public":          {deletes(configMap, "kube-public", "guarded"), inKubernetes, reserved},
		"delete all objects in kube-public":        {empties(configMap, "kube-public"), inKubernetes, reserved},
		"delete an object in another namespace":    {deletes(configMap, "default", "guarded"), everyUser, ""},
		"create an object in another namespace":    {creates(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: c}}`), everyUser, ""},
		"create an object in a member's namespace": {creates(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: fleet-member-guarded, name: c}}`), passing, reserved},
		"write an event in a member's namespace":   {creates(event), withMember, ""},
		"note what became of the release": {creates(`{apiVersion: v1, kind: Secret, metadata: {namespace: fleet-system, name: sh.helm.release.v1.hub-agent.v2},
			type: helm.sh/release.v1}`), everyUser, ""},
		"hide a Secret as what became of another release": {creates(`{apiVersion: v1, kind: Secret, metadata: {namespace: fleet-system, name: sh.helm.release.v1.mine.v1},
			type: helm.sh/release.v1}`), inKubernetes, reserved},
		"elect a leader in kube-system": {creates(lease), slices.DeleteFunc(slices.Clone(everyUser), func(sender string) bool {
			return sender == "jane"
		}), reserved},
		"ask what may be done in kube-system": {creates(`{apiVersion: authorization.k8s.io/v1, kind: LocalSubjectAccessReview, metadata: {namespace: kube-system},
			spec: {user: jane, resourceAttributes: {namespace: kube-system, verb: get, resource: pods}}}`), everyUser, ""},
	}
}

func internalDeeds() map[string]deed {
	withMember := append(slices.Clone(passing), "the member", "its account")
	const snapshot = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceSnapshot, metadata: {name: web-0-snapshot}, spec: {selectedResources: []}}`
	const foreign = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}, spec: {group: example.com,
		scope: Cluster, names: {kind: Thing, plural: things}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`
	return map[string]deed{
		"report about a member":               {changes(mailbox, box, "guarded", `{status: {conditions: []}}`, "status"), withMember, internal},
		"tell a member to leave":              {changes(mailbox, box, "guarded", `{spec: {state: Leave}}`), passing, internal},
		"delete a mailbox":                    {deletes(mailbox, box, "guarded"), passing, internal},
		"report about a Work":                 {changes(work, box, "web-work", `{status: {conditions: []}}`, "status"), withMember, internal},
		"report about a Work through v1":      {changes(oldWork, box, "web-work", `{status: {conditions: []}}`, "status"), withMember, internal},
		"take the finalizer off a Work":       {changes(work, box, "web-work", `{metadata: {finalizers: null}}`), withMember, internal},
		"add a finalizer to a Work":           {changes(work, box, "web-work", `{metadata: {finalizers: [kubernetes-fleet.io/work-cleanup, example.com/hold]}}`), passing, internal},
		"give a role in a member's namespace": {creates(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: fleet-member-guarded, name: r}}`), passing, reserved},
		"give a role in another namespace":    {creates(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: default, name: r}}`), butTheHubAgent(everyUser), ""},
		"say of what binding a Work is":       {changes(work, box, "web-work", `{metadata: {labels: {kubernetes-fleet.io/parent-resource-binding: api}}}`), passing, internal},
		"annotate a Work":                     {changes(work, box, "web-work", `{metadata: {annotations: {a: b}}}`), passing, internal},
		"give a Work another owner":           {changes(work, box, "web-work", `{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: b}]}}`), passing, internal},
		"change what a Work applies":          {changes(work, box, "web-work", `{spec: {workload: {manifests: []}}}`), passing, internal},
		"delete a Work":                       {deletes(work, box, "web-work"), passing, internal},
		"create a snapshot":                   {creates(snapshot), passing, internal},
		"put something on record":             {creates(auditRecord), passing, recorded},
		"say that a record was delivered": {changes("{apiVersion: fleetflow.io/v1alpha1, kind: AuditRecord}", "", "guarded", `{status: {complete: true}}`, "status"),
			passing, recorded},
		"say that a sink gets its records": {changes("{apiVersion: fleetflow.io/v1alpha1, kind: AuditSink}", "", "guarded", `{status: {pending: 0}}`, "status"),
			passing, "auditsinks" + concluded},
		"change a binding":                   {changes(resourceBinding, "", "web-guarded", `{spec: {state: Unscheduled}}`), passing, internal},
		"report about a binding":             {changes(resourceBinding, "", "web-guarded", `{status: {conditions: []}}`, "status"), passing, internal},
		"delete a binding":                   {deletes(resourceBinding, "", "web-guarded"), passing, internal},
		"delete all bindings":                {empties(resourceBinding, ""), passing, internal},
		"delete a namespaced binding":        {deletes(namespacedBinding, "default", "web-guarded"), passing, internal},
		"take off what a placement has left": {deletes(namespacedBinding, "default", "web-left"), everyUser, ""},
		"take off what is picked again":      {deletes(namespacedBinding, "default", "web-again"), passing, internal},
		"say that a placement has left what it holds": {changes(namespacedBinding, "default", "web-guarded",
			`{metadata: {annotations: {fleetflow.io/superseded: "2026-01-01T00:00:00Z"}}}`), passing, internal},
		"change a definition of the fleet":     {changes(definition, "", placements, `{metadata: {labels: {a: b}}}`), passing, defined},
		"delete a definition of the fleet":     {deletes(definition, "", placements), passing, defined},
		"create a definition of somebody else": {creates(foreign), everyUser, ""},
	}
}

// statusDeeds are those to what the agents conclude, and go by: an approval, a frozen plan, the end of a stage.
func statusDeeds() map[string]deed {
	const (
		status = `{status: {conditions: []}}`
		pass   = `{status: {stagesStatus: [{stageName: canary, afterStageTaskStatus: [{type: Approval, conditions: [{type: ApprovalRequestApproved, status: "True",
			reason: mine, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}]}]}}`
		approvalOf  = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterApprovalRequest, metadata: {name: web-prod}, spec: {parentStageRollout: web, targetStage: prod}}`
		namespaceds = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ApprovalRequest, metadata: {namespace: default, name: web-prod}, spec: {parentStageRollout: web, targetStage: prod}}`
	)
	return map[string]deed{
		"write the status of a placement":            {changes(placement, "", "guarded", status, "status"), passing, "clusterresourceplacements" + concluded},
		"write the status of a namespaced placement": {changes(namespaced, "default", "guarded", status, "status"), passing, "resourceplacements" + concluded},
		"pass a gate in the status of a run":         {changes(updateRun, "", "guarded", pass, "status"), passing, "clusterstagedupdateruns" + concluded},
		"pass a gate through an older version":       {changes(oldUpdateRun, "", "guarded", pass, "status"), passing, "clusterstagedupdateruns" + concluded},
		"pass a gate of a namespaced run":            {changes(namespacedUpdateRun, "default", "guarded", pass, "status"), passing, "stagedupdateruns" + concluded},
		"write the outcome of an eviction":           {changes(evictionOf, "", "guarded", status, "status"), passing, "clusterresourceplacementevictions" + concluded},
		"stop a run":                                 {changes(updateRun, "", "guarded", `{spec: {state: Stop}}`), everyUser, ""},
		"label a placement":                          {changes(placement, "", "guarded", `{metadata: {labels: {a: b}}}`), everyUser, ""},
		"make an approval request":                   {creates(approvalOf), passing, requested},
		"make a namespaced approval request":         {creates(namespaceds), passing, "approvalrequests/status, such as by kubectl fleet approve"},
		"say that a request is that of another run":  {changes(approval, "", "guarded-canary", `{metadata: {annotations: {fleetflow.io/update-run-uid: u}}}`), passing, requested},
		"delete an approval request":                 {deletes(approval, "", "guarded-canary"), passing, requested},
		"take an approval back":                      {changes(approval, "", "guarded-canary", status, "status"), everyUser, ""},
	}
}

func memberDeeds() map[string]deed {
	return map[string]deed{
		"report about a MemberCluster":                {changes(memberCluster, "", "unmanaged", `{status: {conditions: []}}`, "status"), passing, reported},
		"label a MemberCluster":                       {changes(memberCluster, "", "guarded", `{metadata: {labels: {environment: staging}}}`), everyUser, ""},
		"taint a managed MemberCluster":               {changes(memberCluster, "", "guarded", `{spec: {taints: [{key: a, effect: NoSchedule}]}}`), everyUser, ""},
		"take a managed MemberCluster over":           {changes(memberCluster, "", "guarded", `{spec: {identity: {name: theirs}}}`), passing, frozen},
		"let a managed MemberCluster report less":     {changes(memberCluster, "", "guarded", `{spec: {heartbeatPeriodSeconds: 600}}`), passing, frozen},
		"let a managed MemberCluster leave unchecked": {changes(memberCluster, "", "guarded", `{spec: {deleteOptions: {validationMode: Skip}}}`), passing, frozen},
		"give a managed MemberCluster another agent":  {changes(memberCluster, "", "guarded", `{spec: {agent: {requestTime: "2026-01-01T00:00:00Z", renewToken: true}}}`), passing, frozen},
		"let a MemberCluster report less":             {changes(memberCluster, "", "unmanaged", `{spec: {heartbeatPeriodSeconds: 600}}`), everyUser, ""},
		"change an annotation of one's own":           {changes(memberCluster, "", "guarded", `{metadata: {annotations: {note: theirs}}}`), everyUser, ""},
		"change an annotation of the fleet":           {changes(memberCluster, "", "guarded", `{metadata: {annotations: {fleet.azure.com/cluster-resource-id: "2"}}}`), passing, annotated},
		"remove an annotation of the fleet":           {changes(memberCluster, "", "guarded", `{metadata: {annotations: null}}`), passing, annotated},
		"add an annotation of the fleet":              {changes(memberCluster, "", "unmanaged", `{metadata: {annotations: {fleet.azure.com/x: "1"}}}`), passing, annotated},
		"delete a managed MemberCluster":              {deletes(memberCluster, "", "guarded"), passing, annotated},
		"delete a MemberCluster":                      {deletes(memberCluster, "", "unmanaged"), everyUser, ""},
		"create a managed MemberCluster":              {creates(newMember("fleet.azure.com/x")), passing, annotated},
		"create a MemberCluster":                      {creates(newMember("example.com/fleet.azure.com")), everyUser, ""},
	}
}

// newMember returns a manifest of a MemberCluster with an annotation.
func newMember(annotation string) string {
	return `{apiVersion: cluster.kubernetes-fleet.io/v1, kind: MemberCluster, metadata: {name: new, annotations: {` + annotation +
		`: a}}, spec: {identity: {kind: User, name: new, apiGroup: rbac.authorization.k8s.io}}}`
}

func workloadDeeds() map[string]deed {
	return map[string]deed{
		"run a pod":                   {creates(pod("default")), nil, "Pod default/p" + noWorkloads},
		"run a pod in fleet-system":   {creates(pod("fleet-system")), inKubernetes, reserved},
		"run a replica set":           {creates(replicaSet("default")), nil, "ReplicaSet default/p" + noWorkloads},
		"run a replica set in kube-*": {creates(replicaSet("kube-system")), inKubernetes, reserved},
		"create a template of pods":   {creates(deployment("default")), everyUser, ""},
		"create a disruption budget":  {creates(podBudget("default")), everyUser, ""},
	}
}

const podSpec = `spec: {containers: [{name: c, image: pause}]}`

func pod(namespace string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {namespace: ` + namespace + `, name: p}, ` + podSpec + `}`
}

func replicaSet(namespace string) string { return setOfPods("ReplicaSet", namespace) }

func deployment(namespace string) string { return setOfPods("Deployment", namespace) }

func setOfPods(kind, namespace string) string {
	return `{apiVersion: apps/v1, kind: ` + kind + `, metadata: {namespace: ` + namespace + `, name: p}, spec: {selector: {matchLabels: {a: b}},
		template: {metadata: {labels: {a: b}}, ` + podSpec + `}}}`
}

func podBudget(namespace string) string {
	return `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: ` + namespace + `, name: p}, spec: {minAvailable: 1}}`
}

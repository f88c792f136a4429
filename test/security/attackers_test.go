//go:build integration

package security

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// attackersNamespace has the service accounts of the attackers.
const attackersNamespace = "attackers"

// attacker is a user of the hub with the rights that a team hands out, and no others.
type attacker struct {
	name string
	// cluster is where the attacker is a user; the hub if it is empty.
	cluster string
	// stolen reads a token that is not the attacker's; without it the attacker has a service account.
	stolen func() (string, error)
	// clusterRoles are ClusterRoles that are there, by the namespace that they are bound in; "" binds them everywhere.
	clusterRoles map[string]string
	// rules are granted everywhere.
	rules []rbacv1.PolicyRule
	// team are ClusterRoles that are bound in the namespace of an application team.
	team []string

	once   sync.Once
	config *rest.Config
	client client.WithWatch
	err    error
}

// everyVerb are those that a team gets on what is its own.
var everyVerb = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

func placementRule(verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{placementv1beta1.GroupVersion.Group}, Resources: resources, Verbs: verbs}
}

// The attackers.
var (
	// editor has Kubernetes' own ClusterRole edit in the namespace of an application that is placed.
	editor = &attacker{name: "editor", clusterRoles: map[string]string{placed: "edit"}}
	// namespaceAdmin has Kubernetes' own ClusterRole admin there.
	namespaceAdmin = &attacker{name: "namespace-admin", clusterRoles: map[string]string{placed: "admin"}}
	// wrapper is an editor who may write ResourceEnvelopes in that namespace.
	wrapper = &attacker{name: "wrapper", clusterRoles: map[string]string{placed: "edit"}, rules: []rbacv1.PolicyRule{
		placementRule(everyVerb, "resourceenvelopes"),
	}}
	// placer writes placements, and looks at what became of them.
	placer = &attacker{name: "placer", rules: []rbacv1.PolicyRule{
		placementRule(everyVerb, "clusterresourceplacements", "clusterresourceoverrides", "clusterresourceplacementevictions"),
		placementRule([]string{"get", "list", "watch"}, "*"),
	}}
	// runner writes runs and strategies.
	runner = &attacker{name: "runner", rules: []rbacv1.PolicyRule{
		placementRule(everyVerb, "clusterstagedupdateruns", "clusterstagedupdatestrategies"),
		placementRule([]string{"get", "list", "watch"}, "*"),
	}}
	// member of an application team: places, runs and approves in its namespace.
	crewMember = &attacker{name: "crew-member", team: []string{"edit", "hub-agent-team-placer", "hub-agent-team-runner", "hub-agent-team-approver"}}
	// crewOwner may do everything with the fleet's kinds in that namespace.
	crewOwner = &attacker{name: "crew-owner", team: []string{"crew-owner"}}
	// statusWriter may write every object of the fleet's API and its status: what many teams hand out as "fleet admin".
	statusWriter = &attacker{name: "status-writer", rules: []rbacv1.PolicyRule{placementRule(everyVerb, "*")}}
	// approver approves.
	approver = &attacker{name: "approver", rules: []rbacv1.PolicyRule{
		placementRule([]string{"get", "list", "watch"}, "*"),
		placementRule([]string{"get", "update", "patch"}, "clusterapprovalrequests/status"),
	}}
	// annotator may change what is not the status of approval requests.
	annotator = &attacker{name: "annotator", rules: []rbacv1.PolicyRule{
		placementRule([]string{"get", "list", "watch", "update", "patch"}, "clusterapprovalrequests"),
	}}
	// operator does everything with members but let them in.
	operator = &attacker{name: "operator", rules: []rbacv1.PolicyRule{{
		APIGroups: []string{clusterv1beta1.GroupVersion.Group}, Resources: []string{"memberclusters", "memberclusters/status"}, Verbs: everyVerb,
	}}}
	// joiner lets one member join, and may write accounts, Secrets and roles.
	joiner = &attacker{name: "joiner", rules: []rbacv1.PolicyRule{
		{APIGroups: []string{clusterv1beta1.GroupVersion.Group}, Resources: []string{"memberclusters"}, ResourceNames: []string{"member-1"}, Verbs: append(slices.Clone(everyVerb), "join")},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts", "serviceaccounts/token", "secrets"}, Verbs: everyVerb},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: everyVerb},
	}}
	// soloist writes runs, and approves.
	soloist = &attacker{name: "soloist", rules: append(slices.Clone(runner.rules), approver.rules...)}
	// analyst writes metric sources and templates of analyses, and no Secrets.
	analyst = &attacker{name: "analyst", clusterRoles: map[string]string{"": "hub-agent-analysis-admin"}}
	// author writes templates of analyses that measure at any source, and no metric sources.
	author = &attacker{name: "author", clusterRoles: map[string]string{"": "hub-agent-analysis-author"}, rules: useOf()}
	// drafter writes templates of analyses that measure at one source.
	drafter = &attacker{name: "drafter", clusterRoles: map[string]string{"": "hub-agent-analysis-author"}, rules: useOf("lent")}
	// watcher reads what holds rollouts back, and what measured them.
	watcher = &attacker{name: "watcher", clusterRoles: map[string]string{"": "hub-agent-gates-viewer"}}
	// viewer reads what there is of the fleet, and no content.
	viewer = &attacker{name: "viewer", clusterRoles: map[string]string{"": "hub-agent-viewer"}}
	// holder stops the line.
	holder = &attacker{name: "holder", clusterRoles: map[string]string{"": "hub-agent-hold"}}
	// settler places in a namespace in which the platform places with a priority.
	settler = &attacker{name: "settler", clusterRoles: map[string]string{ranked: "hub-agent-team-placer"}}
	// neighbour is of another application team.
	neighbour = &attacker{name: "neighbour", clusterRoles: map[string]string{placed: "hub-agent-team-placer"}}
	// hoarder is an editor of a namespace who may write ResourceOverrides there.
	hoarder = &attacker{name: "hoarder", clusterRoles: map[string]string{hoard: "edit"}, rules: []rbacv1.PolicyRule{
		placementRule(everyVerb, "resourceoverrides"),
	}}
	// clusterEditor has Kubernetes' own ClusterRole edit in all namespaces.
	clusterEditor = &attacker{name: "cluster-editor", clusterRoles: map[string]string{"": "edit"}}
	// thief has the token of a member.
	thief = &attacker{name: "thief", stolen: func() (string, error) {
		token, err := os.ReadFile(target.HubTokenFile("member-1"))
		return string(token), err
	}}
	// renewer has a token of the account that a member has after it has joined by the script.
	renewer = &attacker{name: "renewer", stolen: func() (string, error) {
		request := &authenticationv1.TokenRequest{}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "connect-to-fleet", Name: memberAccount}}
		err := target.hub.SubResource("token").Create(context.Background(), account, request)
		return request.Status.Token, err
	}}
	// hubAgent and memberAgent have the tokens of our agents on their own clusters.
	hubAgent    = &attacker{name: "hub-agent", stolen: func() (string, error) { return target.Tokens["hub/fleet-hub-agent"], nil }}
	memberAgent = &attacker{name: "member-agent", cluster: "member-1", stolen: func() (string, error) { return target.Tokens["member-1/fleet-member-agent"], nil }}
	// stranger is anybody whom the hub knows.
	stranger = &attacker{name: "stranger"}
)

// useOf is the right to have templates measured at sources, or at each.
func useOf(sources ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{fleetflowv1alpha1.GroupName}, Resources: []string{"metricsources"}, ResourceNames: sources, Verbs: []string{"use"}}}
}

// session returns the attacker's own client of the hub. The first call creates the account and what it may do.
func (a *attacker) session(s *spec) client.WithWatch {
	s.Helper()
	a.once.Do(func() { a.client, a.err = a.open(s.Context()) })
	if a.err != nil {
		s.Fatalf("letting %s in: %v", a.name, a.err)
	}
	return a.client
}

func (a *attacker) open(ctx context.Context) (client.WithWatch, error) {
	token, err := a.token(ctx)
	if err != nil {
		return nil, err
	}
	admin, err := controlplane.RESTConfig(target.Fleet, cmp.Or(a.cluster, state.Hub))
	if err != nil {
		return nil, err
	}
	a.config = rest.AnonymousClientConfig(admin)
	a.config.BearerToken = token
	a.config.QPS = -1
	a.config.Burst = 0 // the specs wait for nothing but the server
	session, err := client.NewWithWatch(a.config, client.Options{Scheme: controlplane.Scheme()})
	if err != nil || a.stolen != nil {
		return session, err
	}
	return session, a.awaitGrants(ctx, session)
}

// awaitGrants returns once the hub's API server knows all that the attacker may do. What is refused before that says nothing.
func (a *attacker) awaitGrants(ctx context.Context, session client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	await := func(namespace, role string) error {
		given := &rbacv1.ClusterRole{}
		if err := target.hub.Get(ctx, client.ObjectKey{Name: role}, given); err != nil {
			return fmt.Errorf("reading what %s may do: %w", a.name, err)
		}
		return access.AwaitRights(ctx, session, namespace, given.Rules...)
	}
	for _, grant := range a.grants() {
		var err error
		switch grant := grant.(type) {
		case *rbacv1.ClusterRoleBinding:
			err = await("", grant.RoleRef.Name)
		case *rbacv1.RoleBinding:
			err = await(grant.Namespace, grant.RoleRef.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *attacker) token(ctx context.Context) (string, error) {
	if a.stolen != nil {
		return a.stolen()
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: attackersNamespace, Name: a.name}}
	objects := append([]client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: attackersNamespace}}, account,
	}, a.grants()...)
	for _, object := range objects {
		if err := target.hub.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := target.hub.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("asking for a token of %s: %w", a.name, err)
	}
	return request.Status.Token, nil
}

// grants are the roles of the attacker and their bindings.
func (a *attacker) grants() []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: attackersNamespace, Name: a.name}}
	reference := func(role string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	}
	var objects []client.Object
	if len(a.rules) > 0 {
		own := metav1.ObjectMeta{Name: "attackers-" + a.name}
		objects = append(objects, &rbacv1.ClusterRole{ObjectMeta: own, Rules: a.rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: own, RoleRef: reference(own.Name), Subjects: subjects})
	}
	for _, role := range a.team {
		objects = append(objects, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: crew, Name: "attackers-" + a.name + "-" + role}, RoleRef: reference(role), Subjects: subjects,
		})
	}
	for namespace, role := range a.clusterRoles {
		bound := metav1.ObjectMeta{Namespace: namespace, Name: "attackers-" + a.name + "-" + role}
		if namespace == "" {
			objects = append(objects, &rbacv1.ClusterRoleBinding{ObjectMeta: bound, RoleRef: reference(role), Subjects: subjects})
			continue
		}
		objects = append(objects, &rbacv1.RoleBinding{ObjectMeta: bound, RoleRef: reference(role), Subjects: subjects})
	}
	return objects
}

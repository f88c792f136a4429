//go:build integration

package member

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/onemember"
)

// change is a case of the corpus: what a cluster has, what a Work brings first, and what it would bring then. What is predicted of each
// object is compared with what the agent then reports of it. Every case has a namespace of its own, and is mostly about the object x.
type change struct {
	sentence string
	// stands prepares the cluster.
	stands func(*trial)
	// first is what the Work has before.
	first func(*trial) []map[string]any
	// between happens when that is applied.
	between func(*trial)
	// then is what it would have.
	then func(*trial) []map[string]any
	// strategy is how it is applied.
	strategy placementv1beta1.ApplyStrategy
	// inAnyOrder is whether it is chance which of the objects is refused: how many are is compared then.
	inAnyOrder bool
	// want is what is to be predicted of x, and by whom it is refused.
	want fleetflowv1alpha1.RehearsalOutcome
	by   string
}

// trial is a case that is tried.
type trial struct {
	*spec
	work string
}

const (
	refused   = fleetflowv1alpha1.RehearsalRefused
	conflicts = fleetflowv1alpha1.RehearsalConflicts
	unknown   = fleetflowv1alpha1.RehearsalUnknown
	creates   = fleetflowv1alpha1.RehearsalCreates
	changes   = fleetflowv1alpha1.RehearsalChanges
	same      = fleetflowv1alpha1.RehearsalSame
)

type fields = map[string]any

func one(build func(*trial) fields) func(*trial) []map[string]any {
	return func(c *trial) []map[string]any { return []map[string]any{build(c)} }
}

// x is a manifest of the name x in the namespace of the case.
func x(apiVersion, kind string, content fields) func(*trial) []map[string]any {
	return one(func(c *trial) fields { return c.manifest(apiVersion, kind, "x", content) })
}

// text is a ConfigMap x with one value.
func text(value string) func(*trial) []map[string]any {
	return one(func(c *trial) fields { return c.configMap("x", value) })
}

// cluster is a manifest of a cluster-scoped object that is named after the case.
func clusterObject(apiVersion, kind string, content fields) func(*trial) []map[string]any {
	return one(func(c *trial) fields {
		out := fields{"apiVersion": apiVersion, "kind": kind, "metadata": fields{"name": c.name}}
		maps.Copy(out, content)
		return out
	})
}

func exists(build func(*trial) []map[string]any, options ...client.CreateOption) func(*trial) {
	return func(c *trial) {
		for _, object := range build(c) {
			c.create(&unstructured.Unstructured{Object: object}, options...)
		}
	}
}

func (c *trial) create(object client.Object, options ...client.CreateOption) {
	c.Helper()
	require.NoError(c, rig.Member.Create(c.ctx, object, options...))
}

// awaitAnswerTo waits until the API server answers the creation of an object as wanted: it learns of policies, webhooks and quotas a while later.
func (c *trial) awaitAnswerTo(object fields, wanted func(*unstructured.Unstructured, error) bool) {
	c.Helper()
	require.Eventually(c, func() bool {
		tried := &unstructured.Unstructured{Object: object}
		tried = tried.DeepCopy()
		err := rig.Member.Create(c.ctx, tried, client.DryRunAll)
		return wanted(tried, err)
	}, patience, pollEvery)
}

func isRefused(_ *unstructured.Unstructured, err error) bool { return err != nil }

func deployment(labels fields, containers ...any) fields {
	if containers == nil {
		containers = []any{fields{"name": "c", "image": "i"}}
	}
	return fields{"spec": fields{"selector": fields{"matchLabels": fields{"app": "x"}},
		"template": fields{"metadata": fields{"labels": labels}, "spec": fields{"containers": containers}}}}
}

func pod(container fields, more fields) fields {
	spec := fields{"containers": []any{container}, "automountServiceAccountToken": false}
	maps.Copy(spec, more)
	return fields{"spec": spec}
}

// quota has a quota that its controller has looked at.
func quota(of corev1.ResourceName, hard string) func(*trial) {
	return func(c *trial) {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: c.name, Name: "q"}}
		q.Spec.Hard = corev1.ResourceList{of: resource.MustParse(hard)}
		c.create(q)
		require.Eventually(c, func() bool {
			return rig.Member.Get(c.ctx, client.ObjectKeyFromObject(q), q) == nil && len(q.Status.Hard) == 1
		}, patience, pollEvery)
	}
}

func secret(c *trial, name string) fields { return c.manifest("v1", "Secret", name, nil) }

// widgets defines a kind with rules.
func widgets(rules ...any) func(*trial) {
	return func(c *trial) {
		kind := definition(group(c.name))
		versions, _, _ := unstructured.NestedFieldNoCopy(kind.Object, "spec", "versions")
		size := fields{"type": "integer"}
		if len(rules) > 0 {
			size["x-kubernetes-validations"] = rules
		}
		versions.([]any)[0].(map[string]any)["schema"] = fields{"openAPIV3Schema": fields{"type": "object", "properties": fields{
			"spec": fields{"type": "object", "properties": fields{"size": size}},
		}}}
		c.create(kind)
		c.awaitAnswerTo(widget(int64(5))(c)[0], func(_ *unstructured.Unstructured, err error) bool { return err == nil })
	}
}

func widget(size any) func(*trial) []map[string]any {
	return one(func(c *trial) fields {
		return c.manifest(group(c.name)+"/v1", "Widget", "x", fields{"spec": fields{"size": size}})
	})
}

// hooked has a webhook for the ConfigMaps of the case at an address.
func hooked(url func(*trial) (string, []byte), sideEffects admissionv1.SideEffectClass, mutates bool, isThere func(*unstructured.Unstructured, error) bool) func(*trial) {
	return func(c *trial) {
		at, authority := url(c)
		fail := admissionv1.Fail
		rules := []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}}
		here := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: c.name}}
		config := admissionv1.WebhookClientConfig{URL: &at, CABundle: authority}
		name := metav1.ObjectMeta{Name: c.name}
		var object client.Object = &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: name, Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "hook." + c.name + ".example.com", FailurePolicy: &fail, SideEffects: &sideEffects, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: config, NamespaceSelector: here, Rules: rules,
		}}}
		if mutates {
			object = &admissionv1.MutatingWebhookConfiguration{ObjectMeta: name, Webhooks: []admissionv1.MutatingWebhook{{
				Name: "hook." + c.name + ".example.com", FailurePolicy: &fail, SideEffects: &sideEffects, AdmissionReviewVersions: []string{"v1"},
				ClientConfig: config, NamespaceSelector: here, Rules: rules,
			}}}
		}
		c.create(object)
		c.Cleanup(func() { _ = rig.Member.Delete(context.Background(), object) })
		c.awaitAnswerTo(c.configMap("tried", "v"), isThere)
	}
}

func away(*trial) (string, []byte) { return "https://127.0.0.1:1/refuse", nil }

// serving is a webhook that answers each request with a response.
func serving(response fields) func(*trial) (string, []byte) {
	return func(c *trial) (string, []byte) {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			review := fields{}
			data, _ := io.ReadAll(r.Body)
			_ = json.Unmarshal(data, &review)
			answer := fields{"uid": review["request"].(map[string]any)["uid"]}
			maps.Copy(answer, response)
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(fields{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})
		}))
		c.Cleanup(server.Close)
		return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
}

func patching(patch string) fields {
	return fields{"allowed": true, "patchType": "JSONPatch", "patch": []byte(patch)}
}

func mutated(object *unstructured.Unstructured, err error) bool {
	return err == nil && object.GetLabels()["hooked"] == "yes"
}

var (
	serverSide = placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeServerSideApply}
	never      = placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeNever}
	ifNoDiff   = placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeIfNoDiff}
	notDrifted = placementv1beta1.ApplyStrategy{WhenToApply: placementv1beta1.WhenToApplyTypeIfNotDrifted}
)

func label(key, value string) func(*trial) {
	return func(c *trial) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.name}}
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
		require.NoError(c, rig.Member.Patch(c.ctx, namespace, client.RawPatch("application/merge-patch+json", []byte(patch))))
	}
}

// corpus has what may go wrong with a change, and what only looks so.
var corpus = []change{
	// Nothing is wrong.
	{sentence: "a new object", then: text("v"), want: creates},
	{sentence: "a changed value", first: text("v"), then: text("w"), want: changes},
	{sentence: "the same value", first: text("v"), then: text("v"), want: same},
	{sentence: "a new object server-side", then: text("v"), strategy: serverSide, want: creates},
	{sentence: "a changed value server-side", first: text("v"), then: text("w"), strategy: serverSide, want: changes},
	{sentence: "an object of the cluster that is taken over", stands: exists(text("v")), then: text("w"), want: changes},
	{sentence: "one that is taken over server-side, alone", stands: exists(text("v"), client.FieldOwner("work-api-agent")), then: text("w"), strategy: serverSide, want: changes},
	{sentence: "one that is taken over as it does not differ", stands: exists(text("v")), then: text("v"), strategy: ifNoDiff, want: same},
	{sentence: "a Deployment", then: x("apps/v1", "Deployment", deployment(fields{"app": "x"})), want: creates},
	{sentence: "another image", first: x("apps/v1", "Deployment", deployment(fields{"app": "x"})),
		then: x("apps/v1", "Deployment", deployment(fields{"app": "x"}, fields{"name": "c", "image": "j"})), want: changes},
	{sentence: "the same Deployment", first: x("apps/v1", "Deployment", deployment(fields{"app": "x"})),
		then: x("apps/v1", "Deployment", deployment(fields{"app": "x"})), want: same},
	{sentence: "a Service", then: x("v1", "Service", fields{"spec": fields{"ports": []any{fields{"port": int64(80)}}}}), want: creates},
	{sentence: "a Secret", first: x("v1", "Secret", fields{"stringData": fields{"a": "b"}}), then: x("v1", "Secret", fields{"stringData": fields{"a": "c"}}), want: changes},
	{sentence: "a custom resource", stands: widgets(), first: widget(int64(1)), then: widget(int64(2)), want: changes},
	{sentence: "an object that a webhook changes", stands: hooked(serving(patching(`[{"op":"add","path":"/metadata/labels","value":{"hooked":"yes"}}]`)),
		admissionv1.SideEffectClassNone, true, mutated), then: text("v"), want: creates},
	{sentence: "an object of which a webhook overwrites a value",
		stands: hooked(serving(patching(`[{"op":"add","path":"/metadata/labels","value":{"hooked":"yes"}},{"op":"replace","path":"/data","value":{"key":"theirs"}}]`)),
			admissionv1.SideEffectClassNone, true, mutated), then: text("v"), want: creates},
	{sentence: "a quota that has room", stands: quota("count/secrets", "1"), then: x("v1", "Secret", nil), want: creates},
	{sentence: "a Namespace with what is in it", then: func(c *trial) []map[string]any {
		return []map[string]any{onemember.NamespaceOf(c.name + "-x"), onemember.ConfigMap(c.name+"-x", "x", "v")}
	}, want: creates},
	{sentence: "a definition with an object of it", then: func(c *trial) []map[string]any {
		return []map[string]any{definition(group(c.name)).Object, c.manifest(group(c.name)+"/v1", "Widget", "x", nil)}
	}, want: unknown},
	{sentence: "drift is put right", first: text("v"), between: func(c *trial) { c.spoil("x", "w") }, then: text("v"), want: ""},

	// The API server finds fault with the object.
	{sentence: "a ConfigMap that cannot be changed", first: x("v1", "ConfigMap", fields{"immutable": true, "data": fields{"a": "b"}}),
		then: x("v1", "ConfigMap", fields{"immutable": true, "data": fields{"a": "c"}}), want: refused, by: "API server"},
	{sentence: "another selector", first: x("apps/v1", "Deployment", deployment(fields{"app": "x", "b": "c"})),
		then: one(func(c *trial) fields {
			d := c.manifest("apps/v1", "Deployment", "x", deployment(fields{"app": "x", "b": "c"}))
			_ = unstructured.SetNestedField(d, "c", "spec", "selector", "matchLabels", "b")
			return d
		}), want: refused, by: "API server"},
	{sentence: "a selector that selects nothing of its own", then: x("apps/v1", "Deployment", deployment(fields{"app": "y"})), want: refused, by: "API server"},
	{sentence: "another role of a binding", first: x("rbac.authorization.k8s.io/v1", "RoleBinding", fields{"roleRef": fields{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}),
		then: x("rbac.authorization.k8s.io/v1", "RoleBinding", fields{"roleRef": fields{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}}),
		want: refused, by: "API server"},
	{sentence: "another type of a Secret", first: x("v1", "Secret", fields{"type": "a/b"}), then: x("v1", "Secret", fields{"type": "a/c"}), want: refused, by: "API server"},
	{sentence: "another template of a Job", first: x("batch/v1", "Job", fields{"spec": fields{"template": fields{"spec": fields{"restartPolicy": "Never", "containers": []any{fields{"name": "c", "image": "i"}}}}}}),
		then: x("batch/v1", "Job", fields{"spec": fields{"template": fields{"spec": fields{"restartPolicy": "Never", "containers": []any{fields{"name": "c", "image": "j"}}}}}}),
		want: refused, by: "API server"},
	{sentence: "a smaller claim", first: x("v1", "PersistentVolumeClaim", fields{"spec": fields{"storageClassName": "none", "accessModes": []any{"ReadWriteOnce"}, "resources": fields{"requests": fields{"storage": "2Gi"}}}}),
		then: x("v1", "PersistentVolumeClaim", fields{"spec": fields{"storageClassName": "none", "accessModes": []any{"ReadWriteOnce"}, "resources": fields{"requests": fields{"storage": "1Gi"}}}}),
		want: refused, by: "API server"},
	{sentence: "another provisioner of a StorageClass", first: clusterObject("storage.k8s.io/v1", "StorageClass", fields{"provisioner": "a.example.com"}),
		then: clusterObject("storage.k8s.io/v1", "StorageClass", fields{"provisioner": "b.example.com"}), want: refused, by: "API server"},
	{sentence: "another command of a Pod", first: x("v1", "Pod", pod(fields{"name": "c", "image": "i"}, nil)),
		then: x("v1", "Pod", pod(fields{"name": "c", "image": "i", "command": []any{"b"}}, nil)), want: refused, by: "API server"},
	{sentence: "a ConfigMap of more than 1 MiB", then: text(strings.Repeat("x", 1<<20+1)), want: refused, by: "API server"},
	{sentence: "a name that is none", then: one(func(c *trial) fields { return c.configMap("Not_a_name", "v") }), want: refused, by: "API server"},
	{sentence: "a key that is none", then: x("v1", "ConfigMap", fields{"data": fields{"not a key": "v"}}), want: refused, by: "API server"},
	{sentence: "a type of Service that is none", then: x("v1", "Service", fields{"spec": fields{"type": "Wrong", "ports": []any{fields{"port": int64(80)}}}}), want: refused, by: "API server"},
	{sentence: "a schedule that is none", then: x("batch/v1", "CronJob", fields{"spec": fields{"schedule": "whenever", "jobTemplate": fields{"spec": fields{"template": fields{"spec": fields{
		"restartPolicy": "Never", "containers": []any{fields{"name": "c", "image": "i"}}}}}}}}), want: refused, by: "API server"},
	{sentence: "a value of another type", then: x("v1", "Service", fields{"spec": fields{"ports": "80"}}), want: refused, by: "API server"},
	{sentence: "a node port that another Service has", stands: exists(one(func(c *trial) fields {
		return c.manifest("v1", "Service", "theirs", fields{"spec": fields{"type": "NodePort", "ports": []any{fields{"port": int64(80), "nodePort": int64(30999)}}}})
	})), then: x("v1", "Service", fields{"spec": fields{"type": "NodePort", "ports": []any{fields{"port": int64(80), "nodePort": int64(30999)}}}}), want: refused, by: "API server"},
	{sentence: "a quantity that is none", then: x("v1", "Pod", pod(fields{"name": "c", "image": "i", "resources": fields{"limits": fields{"cpu": "much"}}}, nil)), want: refused},
	{sentence: "a definition that is none", then: one(func(c *trial) fields {
		kind := definition(group(c.name))
		kind.SetName("x." + group(c.name))
		return kind.Object
	}), want: refused, by: "API server"},
	{sentence: "a value of a custom resource of another type", stands: widgets(), then: widget("large"), want: refused, by: "API server"},
	{sentence: "a rule of a definition", stands: widgets(fields{"rule": "self < 9", "message": "too large"}), then: widget(int64(10)), want: refused, by: "API server"},
	{sentence: "a rule of a definition on changes", stands: widgets(fields{"rule": "self >= oldSelf", "message": "only grows"}), first: widget(int64(5)), then: widget(int64(4)), want: refused, by: "API server"},
	{sentence: "a rule, server-side", stands: widgets(fields{"rule": "self < 9", "message": "too large"}), first: widget(int64(5)), then: widget(int64(10)), strategy: serverSide, want: refused, by: "API server"},

	// The cluster has no such thing.
	{sentence: "a kind that is missing", then: x("missing.example.com/v1", "Widget", nil), want: refused},
	{sentence: "a version that is not served", stands: widgets(), then: one(func(c *trial) fields {
		return c.manifest(group(c.name)+"/v2", "Widget", "x", nil)
	}), want: refused},
	{sentence: "a namespace that is missing", then: one(func(c *trial) fields { return onemember.ConfigMap(c.name+"-missing", "x", "v") }), want: refused, by: "API server"},
	{sentence: "a priority class that is missing", then: x("v1", "Pod", pod(fields{"name": "c", "image": "i"}, fields{"priorityClassName": "missing"})), want: refused, by: "API server"},
	{sentence: "a cluster-scoped object in a namespace", then: x("v1", "Namespace", nil), want: refused},
	{sentence: "a namespace that ends", stands: func(c *trial) {
		held := c.configMap("held", "v")
		held["metadata"].(map[string]any)["finalizers"] = []any{"example.com/held"}
		c.create(&unstructured.Unstructured{Object: held})
		require.NoError(c, rig.Member.Delete(c.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.name}}))
		c.Cleanup(func() { c.letGo("held") })
		c.awaitAnswerTo(c.configMap("tried", "v"), isRefused)
	}, then: text("v"), want: refused, by: "Namespace"},
	{sentence: "a wrong object in a Namespace of the same change", then: func(c *trial) []map[string]any {
		return []map[string]any{onemember.NamespaceOf(c.name + "-x"), c.wrongIn(c.name + "-x")}
	}, want: refused, by: "API server"},

	// Admission refuses it.
	{sentence: "a quota of objects that is used up", stands: quota("count/secrets", "1"), first: one(func(c *trial) fields { return secret(c, "a") }),
		then: func(c *trial) []map[string]any { return []map[string]any{secret(c, "a"), secret(c, "x")} }, want: refused, by: "ResourceQuota q"},
	{sentence: "a quota that the change uses up itself", stands: quota("secrets", "2"),
		then: func(c *trial) []map[string]any {
			return []map[string]any{secret(c, "a"), secret(c, "b"), secret(c, "x")}
		}, inAnyOrder: true, want: refused, by: "ResourceQuota q"},
	{sentence: "a quota of CPUs without limits", stands: quota("limits.cpu", "1"), then: x("v1", "Pod", pod(fields{"name": "c", "image": "i"}, nil)), want: refused, by: "ResourceQuota q"},
	{sentence: "a quota of CPUs that is too small", stands: quota("limits.cpu", "1"),
		then: x("v1", "Pod", pod(fields{"name": "c", "image": "i", "resources": fields{"limits": fields{"cpu": "2"}}}, nil)), want: refused, by: "ResourceQuota q"},
	{sentence: "a LimitRange", stands: exists(one(func(c *trial) fields {
		return c.manifest("v1", "LimitRange", "l", fields{"spec": fields{"limits": []any{fields{"type": "Container", "max": fields{"cpu": "1"}}}}})
	})), then: x("v1", "Pod", pod(fields{"name": "c", "image": "i", "resources": fields{"limits": fields{"cpu": "2"}}}, nil)), want: refused, by: "LimitRange"},
	{sentence: "pod security", stands: label("pod-security.kubernetes.io/enforce", "restricted"),
		then: x("v1", "Pod", pod(fields{"name": "c", "image": "i"}, nil)), want: refused, by: "PodSecurity"},
	{sentence: "a webhook that denies", stands: hooked(serving(fields{"allowed": false, "status": fields{"message": "not on a Friday"}}), admissionv1.SideEffectClassNone, false, isRefused),
		then: text("v"), want: refused, by: "webhook hook."},
	{sentence: "a webhook that denies changes", first: text("v"),
		between: hooked(serving(fields{"allowed": false, "status": fields{"message": "not on a Friday"}}), admissionv1.SideEffectClassNone, false, isRefused),
		then:    text("w"), want: refused, by: "webhook hook."},
	{sentence: "a webhook that is away", stands: hooked(away, admissionv1.SideEffectClassNone, false, isRefused), then: text("v"), want: refused, by: "webhook hook."},
	{sentence: "a policy", stands: func(c *trial) {
		for _, object := range c.policyOn("x") {
			c.create(object)
			c.Cleanup(func() { _ = rig.Member.Delete(context.Background(), object) })
		}
		c.awaitAnswerTo(c.configMap("x", "v"), isRefused)
	}, then: text("v"), want: refused, by: "ValidatingAdmissionPolicy"},

	// Others have it.
	{sentence: "an object of another placement", stands: func(c *trial) {
		require.NoError(c, rig.Hub.Create(c.ctx, onemember.Work(c.work+"-other", c.configMap("x", "v"))))
		c.awaitAvailable(c.work + "-other")
	}, then: text("v"), want: conflicts, by: "-other"},
	{sentence: "an object of the cluster that is not taken over", stands: exists(text("v")), then: text("w"), strategy: never, want: conflicts},
	{sentence: "one that differs", stands: exists(text("v")), then: text("w"), strategy: ifNoDiff, want: conflicts},
	{sentence: "an object with an owner of the cluster", stands: func(c *trial) {
		owner := c.configMap("owner", "v")
		o := &unstructured.Unstructured{Object: owner}
		c.create(o)
		owned := c.configMap("x", "v")
		owned["metadata"].(map[string]any)["ownerReferences"] = []any{fields{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": string(o.GetUID())}}
		c.create(&unstructured.Unstructured{Object: owned})
	}, then: text("w"), want: conflicts, by: "ConfigMap owner"},
	{sentence: "a field of another manager", stands: exists(text("v"), client.FieldOwner("kubectl")), then: text("w"), strategy: serverSide, want: conflicts, by: "kubectl"},
	{sentence: "a field of another manager in an object of ours", first: text("v"), between: func(c *trial) {
		m := &unstructured.Unstructured{Object: fields{"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"namespace": c.name, "name": "x"}, "data": fields{"other": "theirs"}}}
		require.NoError(c, rig.Member.Apply(c.ctx, client.ApplyConfigurationFromUnstructured(m), client.FieldOwner("kubectl")))
	}, then: x("v1", "ConfigMap", fields{"data": fields{"key": "v", "other": "ours"}}), strategy: serverSide, want: conflicts, by: "kubectl"},
	{sentence: "an object that has drifted", first: text("v"), between: func(c *trial) { c.spoil("x", "w") }, then: func(c *trial) []map[string]any {
		return []map[string]any{c.configMap("x", "v"), c.configMap("another", "v")}
	}, strategy: notDrifted, want: conflicts},
	{sentence: "an object that is being deleted", stands: func(c *trial) {
		held := c.configMap("x", "v")
		held["metadata"].(map[string]any)["finalizers"] = []any{"example.com/held"}
		o := &unstructured.Unstructured{Object: held}
		c.create(o)
		require.NoError(c, rig.Member.Delete(c.ctx, o))
	}, then: text("w"), want: refused},

	// The agent, or its owner, does not take it.
	{sentence: "a kind that the owner of the cluster denies", then: clusterObject("scheduling.k8s.io/v1", "PriorityClass", fields{"value": int64(1)}), want: refused, by: "owner of the cluster"},
	{sentence: "a namespace that the owner of the cluster denies", then: one(func(c *trial) fields { return onemember.NamespaceOf("vetoed-" + c.name) }), want: refused, by: "owner of the cluster"},
	{sentence: "a role of Kubernetes", then: one(func(*trial) fields {
		return fields{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": fields{"name": "system:node"}, "rules": []any{}}
	}), want: refused, by: "Kubernetes"},
	{sentence: "the same object twice", then: func(c *trial) []map[string]any { return []map[string]any{c.configMap("a", "v"), c.configMap("a", "w")} }, want: ""},
	{sentence: "a name that the cluster is to choose", then: one(func(c *trial) fields {
		return fields{"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"namespace": c.name, "generateName": "x-"}}
	}), want: refused},
	{sentence: "a right that the agent does not have", stands: func(c *trial) { widgets()(c); c.takeRights() }, then: widget(int64(1)), want: refused,
		by: "rights of the member agent"},
}

// letGo frees what holds the namespace of the case, and waits until that is gone: the cluster would go on trying to empty it, and other
// specs count what is deleted.
func (c *trial) letGo(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.name, Name: name}}
	assert.NoError(c, rig.Member.Patch(ctx, held, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	assert.NoError(c, access.AwaitGone[corev1.Namespace](ctx, rig.Member, client.ObjectKey{Name: c.name}))
}

func (c *trial) wrongIn(namespace string) fields {
	m := onemember.ConfigMap(namespace, "x", "v")
	m["data"] = fields{"not a key": "v"}
	return m
}

// policyOn refuses ConfigMaps of a name in the namespace of the case.
func (c *trial) policyOn(name string) []client.Object {
	objects := c.policy()
	policy := objects[0].(*admissionv1.ValidatingAdmissionPolicy)
	policy.Spec.Validations[0].Expression = fmt.Sprintf(`object.metadata.name != %q || object.metadata.namespace != %q`, name, c.name)
	return objects
}

// agentRole is the role of the agent on the member, as far as it may be taken away for a while.
func (c *trial) agentRole() *rbacv1.ClusterRole {
	bindings := &rbacv1.ClusterRoleBindingList{}
	require.NoError(c, rig.Member.List(c.ctx, bindings))
	for i := range bindings.Items {
		for _, subject := range bindings.Items[i].Subjects {
			if strings.Contains(subject.Name, "member-agent") {
				role := &rbacv1.ClusterRole{}
				require.NoError(c, rig.Member.Get(c.ctx, client.ObjectKey{Name: bindings.Items[i].RoleRef.Name}, role))
				return role
			}
		}
	}
	require.Fail(c, "the agent has no role")
	return nil
}

// knownGroups are what the agent may still write while it may only read the rest.
var knownGroups = []string{"", "apps", "batch", "placement.kubernetes-fleet.io", "apiextensions.k8s.io", "coordination.k8s.io", "rbac.authorization.k8s.io"}

// takeRights takes from the agent the right to write other groups, until the end of the spec.
func (c *trial) takeRights() {
	role := c.agentRole()
	before := role.DeepCopy()
	for i := range role.Rules {
		if len(role.Rules[i].APIGroups) == 1 && role.Rules[i].APIGroups[0] == "*" {
			reads := role.Rules[i].DeepCopy()
			reads.Verbs = []string{"get", "list", "watch"}
			role.Rules[i].APIGroups = knownGroups
			role.Rules = append(role.Rules, *reads)
		}
	}
	require.NotEqual(c, before.Rules, role.Rules)
	require.NoError(c, rig.Member.Patch(c.ctx, role, client.MergeFrom(before)))
	c.Cleanup(func() {
		less := role.DeepCopy()
		role.Rules = before.Rules
		assert.NoError(c, rig.Member.Patch(context.Background(), role, client.MergeFrom(less)), "giving the agent its rights again")
	})
}

// rehearsalsComeTrue asks the member what each change of the corpus would do, has it done, and compares.
func rehearsalsComeTrue(s *spec) {
	var right, wrong, falseAlarms, notRefused, left int
	for i, c := range corpus {
		ctx, cancel := context.WithTimeout(s.T.Context(), patience)
		t := &trial{spec: &spec{T: s.T, ctx: ctx, name: fmt.Sprintf("%s-%d", s.name, i)}}
		t.work = t.name
		s.Run(c.sentence, func(sub *testing.T) {
			t.T = sub
			verdicts := t.tryChange(c)
			if c.inAnyOrder {
				assignRefusals(verdicts)
			}
			for _, verdict := range verdicts {
				switch {
				case verdict.predicted == unknown:
					left++
				case verdict.isRight():
					right++
				default:
					wrong++
					sub.Logf("WRONG: %s", verdict)
				}
				if verdict.applied && verdict.predicted != unknown {
					notRefused++
					if !verdict.isRight() {
						falseAlarms++
					}
				}
			}
		})
		cancel()
	}
	all := right + wrong
	s.Logf("of %d objects in %d changes, %d were predicted right (%.1f %%), %d wrong, of them %d false alarms among %d that were applied; %d were unknown",
		all, len(corpus), right, 100*float64(right)/float64(all), wrong, falseAlarms, notRefused, left)
	assert.GreaterOrEqual(s, float64(right), 0.95*float64(all))
	assert.LessOrEqual(s, float64(falseAlarms), 0.01*float64(notRefused))
}

// verdict is what was predicted of an object, and what the agent reported of it then.
type verdict struct {
	object    string
	predicted fleetflowv1alpha1.RehearsalOutcome
	words     string
	applied   bool
	reported  string
}

// assignRefusals gives the refusals that came to the objects of which they were predicted.
func assignRefusals(verdicts []verdict) {
	left := 0
	for _, v := range verdicts {
		if !v.applied {
			left++
		}
	}
	for i := range verdicts {
		verdicts[i].applied = verdicts[i].predicted != refused || left == 0
		if !verdicts[i].applied {
			left--
		}
	}
	for i := range verdicts {
		if left > 0 && verdicts[i].applied {
			verdicts[i].applied = false
			left--
		}
	}
}

func (v verdict) isRight() bool {
	return (v.predicted == refused || v.predicted == conflicts) != v.applied
}

// String says what was predicted and what happened.
func (v verdict) String() string {
	return fmt.Sprintf("%s was predicted as %s (%s), and applied is %t: %s", v.object, v.predicted, v.words, v.applied, v.reported)
}

// tryChange rehearses a change and has it done.
func (c *trial) tryChange(of change) []verdict {
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.name}})
	if of.stands != nil {
		of.stands(c)
	}
	var placed *placementv1beta1.Work
	if of.first != nil {
		placed = onemember.Work(c.work, of.first(c)...)
		placed.Spec.ApplyStrategy = &of.strategy
		require.NoError(c, rig.Hub.Create(c.ctx, placed))
		c.awaitApplied(c.work)
	}
	if of.between != nil {
		of.between(c)
	}
	manifests := of.then(c)
	asking := time.Now()
	answer := c.askMember(c.questionOf(c.work, &of.strategy, works{{c.work, manifests}}))
	require.NotNil(c, answer.Status.Rehearsal, "%+v", answer.Status.Conditions)
	if of.between == nil { // else the agent may be putting right what has drifted
		c.requireOnlyTried(asking)
	}
	if of.want != "" {
		found := c.subject(answer)
		assert.Equal(c, of.want, found.Outcome, "%+v", answer.objects)
		assert.Contains(c, found.By, of.by, "%+v", answer.objects)
	}
	if placed == nil {
		placed = onemember.Work(c.work, manifests...)
		placed.Spec.ApplyStrategy = &of.strategy
		require.NoError(c, rig.Hub.Create(c.ctx, placed))
	} else {
		c.replaceManifests(placed, manifests...)
	}
	reported := c.awaitReported(c.work)
	var out []verdict
	for _, o := range answer.objects {
		for _, m := range reported.Status.ManifestConditions {
			if m.Identifier.Ordinal != o.Object.Ordinal || o.Outcome == fleetflowv1alpha1.RehearsalRemoves {
				continue
			}
			applied := meta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionTypeApplied)
			require.NotNil(c, applied)
			out = append(out, verdict{
				object: o.Object.Kind + " " + o.Object.Name, predicted: o.Outcome, words: o.By + ": " + o.Message,
				applied: applied.Status == metav1.ConditionTrue, reported: applied.Reason + ": " + applied.Message,
			})
		}
	}
	require.Len(c, out, len(manifests))
	return out
}

// subject returns what is told of the object that a case is about: x, or the last one.
func (c *trial) subject(answer told) fleetflowv1alpha1.RehearsedObject {
	if found := answer.about("x"); found.Outcome != "" {
		return found
	}
	return answer.objects[len(answer.objects)-1]
}

// awaitReported waits until the agent has reported on the Work as it is now.
func (c *trial) awaitReported(work string) *placementv1beta1.Work {
	c.Helper()
	return c.awaitWork(work, func(w *placementv1beta1.Work) string {
		applied := meta.FindStatusCondition(w.Status.Conditions, placementv1beta1.ConditionTypeApplied)
		if applied == nil || applied.ObservedGeneration != w.Generation {
			return "it is not reported"
		}
		return ""
	})
}

func (c *trial) awaitApplied(work string) {
	c.Helper()
	c.awaitWork(work, func(w *placementv1beta1.Work) string {
		applied := meta.FindStatusCondition(w.Status.Conditions, placementv1beta1.ConditionTypeApplied)
		if applied == nil || applied.Status != metav1.ConditionTrue || applied.ObservedGeneration != w.Generation {
			return fmt.Sprintf("it is not applied: %+v", w.Status)
		}
		return ""
	})
}

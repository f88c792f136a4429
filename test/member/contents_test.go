//go:build integration

package member

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/onemember"
)

// manifest is an object in the namespace of the spec.
func (s *spec) manifest(apiVersion, kind, name string, fields map[string]any) map[string]any {
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": s.name, "name": name}}
	maps.Copy(object, fields)
	return object
}

func portOfTwoProtocols(s *spec) {
	service := func(ports ...string) map[string]any {
		var list []any
		for _, port := range ports {
			protocol, target, _ := strings.Cut(port, " ")
			list = append(list, map[string]any{"name": strings.ToLower(protocol), "port": int64(53), "protocol": protocol, "targetPort": target})
		}
		return s.manifest("v1", "Service", "resolver", map[string]any{"spec": map[string]any{"selector": map[string]any{"app": "resolver"}, "ports": list}})
	}
	work := s.place(service("TCP one"))
	s.awaitAvailable(s.name)
	for _, ports := range [][]string{{"TCP one", "UDP one"}, {"TCP one", "UDP two"}, {"UDP two"}, {"TCP one", "UDP two"}, {"UDP three", "TCP one"}} {
		s.replaceManifests(work, service(ports...))
		_, err := access.Await(s.ctx, rig.Member, client.ObjectKey{Namespace: s.name, Name: "resolver"}, func(m *corev1.Service) string {
			var found []string
			for _, port := range m.Spec.Ports {
				found = append(found, fmt.Sprintf("%s %s", port.Protocol, port.TargetPort.String()))
			}
			if !slices.Equal(ports, found) {
				return fmt.Sprintf("its ports are %v", found)
			}
			return ""
		})
		require.NoError(s, err)
		s.awaitAvailable(s.name)
	}
}

func variableSetTwice(s *spec) {
	deployment := func(last string) map[string]any {
		variable := func(name, value string) any { return map[string]any{"name": name, "value": value} }
		return s.manifest("apps/v1", "Deployment", "web", map[string]any{"spec": map[string]any{
			"replicas": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": map[string]any{"containers": []any{
				map[string]any{"name": "c", "image": "example.com/web:1", "env": []any{variable("MODE", "slow"), variable("PORT", "1"), variable("MODE", last)}},
			}}},
		}})
	}
	read := func() *appsv1.Deployment {
		live := &appsv1.Deployment{}
		require.NoError(s, rig.Member.Get(s.ctx, client.ObjectKey{Namespace: s.name, Name: "web"}, live))
		return live
	}
	work := s.place(deployment("fast"))
	s.awaitAvailable(s.name)
	s.replaceManifests(work, deployment("faster"))
	s.awaitAvailable(s.name)
	live := read()
	assert.Equal(s, []corev1.EnvVar{{Name: "MODE", Value: "slow"}, {Name: "PORT", Value: "1"}, {Name: "MODE", Value: "faster"}}, live.Spec.Template.Spec.Containers[0].Env)

	// Whatever else the Work does, the Deployment is left alone.
	live.Labels = map[string]string{"theirs": "1"}
	require.NoError(s, rig.Member.Update(s.ctx, live))
	s.replaceManifests(work, deployment("faster"), s.configMap("another", "v"))
	s.awaitAvailable(s.name)
	assert.Equal(s, live.Generation, read().Generation)
}

// awaitData waits until a ConfigMap on the member has these keys.
func (s *spec) awaitData(name string, keys ...string) *corev1.ConfigMap {
	s.Helper()
	found, err := access.Await(s.ctx, rig.Member, client.ObjectKey{Namespace: s.name, Name: name}, func(m *corev1.ConfigMap) string {
		if m == nil {
			return "it is not there"
		}
		if has := slices.Sorted(maps.Keys(m.Data)); !slices.Equal(keys, has) {
			return fmt.Sprintf("it has %v", has)
		}
		return ""
	})
	require.NoError(s, err)
	return found
}

func largeBecomesSmall(s *spec) {
	settings := func(keys ...string) map[string]any {
		data := map[string]any{}
		for _, key := range keys {
			data[key] = "1"
			if key == "large" {
				data[key] = strings.Repeat("x", 300_000)
			}
		}
		return s.manifest("v1", "ConfigMap", "settings", map[string]any{"data": data})
	}
	work := s.place(settings("gone", "keep", "large"))
	s.awaitData("settings", "gone", "keep", "large")
	s.replaceManifests(work, settings("keep"))
	s.awaitData("settings", "keep")
	s.replaceManifests(work, settings("keep", "large", "soon"))
	s.awaitData("settings", "keep", "large", "soon")
	s.replaceManifests(work, settings("keep", "large"))
	s.awaitData("settings", "keep", "large")
	s.replaceManifests(work, settings("keep"))
	s.awaitData("settings", "keep")
}

func copiesOfTwoTools(s *spec) {
	value := strings.Repeat("x", 150_000)
	live := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "large", Annotations: map[string]string{
			corev1.LastAppliedConfigAnnotation: `{"apiVersion":"v1","kind":"ConfigMap","data":{"key":"` + value + `"}}`,
		}},
		Data: map[string]string{"key": value},
	}
	require.NoError(s, rig.Member.Create(s.ctx, live, client.FieldOwner("kubectl-client-side-apply")))
	work := s.place(s.configMap("large", value))
	s.awaitAvailable(s.name)
	s.replaceManifests(work, s.manifest("v1", "ConfigMap", "large", map[string]any{"data": map[string]any{"key": value, "more": "1"}}))
	s.awaitData("large", "key", "more")
	s.replaceManifests(work, s.configMap("large", value))
	s.awaitData("large", "key")
	s.awaitAvailable(s.name)
}

func wholeNumbers(s *spec) {
	group := s.name + ".example.com"
	require.NoError(s, rig.Member.Create(s.ctx, definition(group)))
	numbers := func(n int64) map[string]any {
		return s.manifest(group+"/v1", "Widget", "w", map[string]any{"spec": map[string]any{"id": n, "list": []any{n}, "ratio": 0.1}})
	}
	work := s.place(numbers(9007199254740993))
	s.awaitAvailable(s.name)
	for _, n := range []int64{9007199254740992, 9007199254740995, 9223372036854775807, -9007199254740993} {
		s.replaceManifests(work, numbers(n))
		s.awaitAvailable(s.name)
		live := &unstructured.Unstructured{}
		live.SetAPIVersion(group + "/v1")
		live.SetKind("Widget")
		require.NoError(s, rig.Member.Get(s.ctx, client.ObjectKey{Namespace: s.name, Name: "w"}, live))
		assert.Equal(s, map[string]any{"id": n, "list": []any{n}, "ratio": 0.1}, live.Object["spec"])
	}
}

func gatheredRole(s *spec) {
	label := map[string]string{"gather.example.com/" + s.name: "true"}
	part := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-part", Labels: label},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get"}}},
	}
	require.NoError(s, rig.Member.Create(s.ctx, part))
	role := func(version, resource string) map[string]any {
		return map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata":        map[string]any{"name": s.name + "-all", "labels": map[string]any{"version": version}},
			"aggregationRule": map[string]any{"clusterRoleSelectors": []any{map[string]any{"matchLabels": map[string]any{"gather.example.com/" + s.name: "true"}}}},
			"rules":           []any{map[string]any{"apiGroups": []any{""}, "resources": []any{resource}, "verbs": []any{"get"}}},
		}
	}
	awaitRole := func(missing func(*rbacv1.ClusterRole) string) *rbacv1.ClusterRole {
		found, err := access.Await(s.ctx, rig.Member, client.ObjectKey{Name: s.name + "-all"}, func(live *rbacv1.ClusterRole) string {
			if live == nil {
				return "it is not there"
			}
			return missing(live)
		})
		require.NoError(s, err)
		return found
	}
	work := s.place(role("one", "configmaps"))
	s.awaitAvailable(s.name)
	gathered := awaitRole(func(live *rbacv1.ClusterRole) string {
		if len(live.Rules) != 1 || live.Rules[0].Resources[0] != "services" {
			return fmt.Sprintf("its rules are %v", live.Rules)
		}
		return ""
	})

	// While nobody gathers, whoever writes the rules is the agent.
	s.away(onemember.Controllers, func() {
		s.replaceManifests(work, role("two", "pods"))
		changed := awaitRole(func(live *rbacv1.ClusterRole) string {
			if live.Labels["version"] != "two" {
				return "it has not changed"
			}
			return ""
		})
		assert.Equal(s, gathered.Rules, changed.Rules)
	})
}

// applied is the condition Applied of the only manifest of the spec's Work.
func applied(w *placementv1beta1.Work) metav1.Condition {
	if len(w.Status.ManifestConditions) != 1 {
		return metav1.Condition{}
	}
	c := meta.FindStatusCondition(w.Status.ManifestConditions[0].Conditions, placementv1beta1.ConditionTypeApplied)
	if c == nil {
		return metav1.Condition{}
	}
	return *c
}

func countedDaemonSet(s *spec) {
	work := s.place(s.manifest("apps/v1", "DaemonSet", "d", map[string]any{"spec": map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "d"}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "d"}}, "spec": map[string]any{"containers": []any{
			map[string]any{"name": "c", "image": "example.com/d:1"},
		}}},
	}}))
	s.awaitWork(s.name, func(w *placementv1beta1.Work) string {
		if c := applied(w); c.Status != metav1.ConditionTrue {
			return fmt.Sprintf("it says %+v", c)
		}
		return ""
	})
	live := &appsv1.DaemonSet{}
	require.NoError(s, rig.Member.Get(s.ctx, client.ObjectKey{Namespace: s.name, Name: "d"}, live))
	require.Contains(s, live.Annotations, appsv1.DeprecatedTemplateGeneration)
	before := work.DeepCopy()
	work.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{
		Type: placementv1beta1.ApplyStrategyTypeReportDiff, ComparisonOption: placementv1beta1.ComparisonOptionTypeFullComparison,
	}
	require.NoError(s, rig.Hub.Patch(s.ctx, work, client.MergeFrom(before)))
	found := s.awaitWork(s.name, func(w *placementv1beta1.Work) string {
		if c := meta.FindStatusCondition(w.Status.Conditions, placementv1beta1.ConditionTypeDiffReported); c == nil || c.ObservedGeneration != w.Generation {
			return "nothing is reported"
		}
		return ""
	})
	for _, detail := range found.Status.ManifestConditions[0].DiffDetails.ObservedDiffs {
		assert.NotContains(s, detail.Path, "annotations")
	}
}

func jobRunsOnce(s *spec) {
	job := s.manifest("batch/v1", "Job", "once", map[string]any{"spec": map[string]any{
		"completions": int64(0), "ttlSecondsAfterFinished": int64(1),
		"template": map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "example.com/once:1"}}}},
	}})
	work := s.place(job)
	_, err := access.Await(s.ctx, rig.Member, client.ObjectKey{Name: s.name}, func(w *placementv1beta1.AppliedWork) string {
		if w == nil || len(w.Status.AppliedResources) != 1 || w.Status.AppliedResources[0].RunResult != "Complete" {
			return "the run is not written down"
		}
		return ""
	})
	require.NoError(s, err)
	key := client.ObjectKey{Namespace: s.name, Name: "once"}
	require.NoError(s, access.AwaitGone[batchv1.Job](s.ctx, rig.Member, key))
	s.replaceManifests(work, job, s.configMap("another", "v"))
	s.awaitAvailable(s.name)
	require.True(s, apierrors.IsNotFound(rig.Member.Get(s.ctx, key, &batchv1.Job{})), "it does not run again")

	job["metadata"].(map[string]any)["annotations"] = map[string]any{"again": "1"}
	s.replaceManifests(work, job, s.configMap("another", "v"))
	_, err = access.Await(s.ctx, rig.Member, key, func(job *batchv1.Job) string {
		if job == nil {
			return "it is not there"
		}
		return ""
	})
	require.NoError(s, err, "another version of its manifest runs")
}

func droppedField(s *spec) {
	s.place(s.manifest("v1", "ConfigMap", "a", map[string]any{"data": map[string]any{"key": "v"}, "fromTheFuture": "1"}))
	work := s.awaitWork(s.name, func(w *placementv1beta1.Work) string {
		if c := applied(w); c.Status != metav1.ConditionTrue || c.Reason != placementv1beta1.ReasonAppliedWithDifference {
			return fmt.Sprintf("it says %+v", c)
		}
		return ""
	})
	assert.Contains(s, applied(work).Message, `/fromTheFuture is not set and not "1"`)
}

// awaitDifference waits until the object of the spec's Work is reported as different, in words that contain all of these.
func (s *spec) awaitDifference(words ...string) *placementv1beta1.Work {
	s.Helper()
	return s.awaitWork(s.name, func(w *placementv1beta1.Work) string {
		c := applied(w)
		for _, word := range words {
			if c.Status != metav1.ConditionTrue || c.Reason != placementv1beta1.ReasonAppliedWithDifference || !strings.Contains(c.Message, word) {
				return fmt.Sprintf("it says %+v", c)
			}
		}
		return ""
	})
}

func headlessService(s *spec) {
	service := func(spec map[string]any) map[string]any {
		spec["selector"], spec["ports"] = map[string]any{"app": "a"}, []any{map[string]any{"port": 80}}
		return map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": s.name, "name": "a"}, "spec": spec}
	}
	s.place(service(map[string]any{"clusterIP": "None"}))
	work := s.awaitAvailable(s.name)
	s.replaceManifests(work, service(map[string]any{}))
	work = s.awaitDifference(`/spec/clusterIP stays "None" although the manifest does not set it any more`, "delete the object on the cluster")
	require.NoError(s, rig.Member.Delete(s.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "a"}}))
	s.awaitWork(s.name, func(w *placementv1beta1.Work) string {
		if c := applied(w); c.Reason != placementv1beta1.ReasonApplied {
			return fmt.Sprintf("it says %+v", c)
		}
		return ""
	})
	s.replaceManifests(work, service(map[string]any{"clusterIP": "None"}))
	s.awaitRefused(s.name, "a", "cannot be changed once the object exists", "delete the object on the cluster")
}

func contested(s *spec) {
	s.place(s.configMap("a", "v"))
	s.awaitAvailable(s.name)
	overwrite := func() {
		s.spoil("a", "theirs")
		s.awaitValue("a", "v")
	}
	for range 8 {
		overwrite()
	}
	told := s.awaitDifference("keeps overwriting the object", `/data/key is "theirs" and not "v", held by `)
	require.NotNil(s, told.Status.ManifestConditions[0].DriftDetails)
	overwrite()
	overwrite()
	fresh := &placementv1beta1.Work{}
	require.NoError(s, rig.Hub.Get(s.ctx, onemember.Key(s.name), fresh))
	assert.Equal(s, told.ResourceVersion, fresh.ResourceVersion, "a repair does not change the report")
}

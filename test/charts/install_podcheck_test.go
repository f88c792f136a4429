//go:build integration

package charts

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestAJobLooksForPodsBeforeTheChartIsApplied applies to a real API server what Argo CD applies first of the chart that it has rendered
// without the cluster, and does what the Job does, with the Job's account.
func TestAJobLooksForPodsBeforeTheChartIsApplied(t *testing.T) {
	f := bringUp(t)
	cluster := f.cluster(t, "member-1")
	for _, text := range []string{
		`{apiVersion: v1, kind: Namespace, metadata: {name: pods-of-others}}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: pods-of-others}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: ` + namespace + `}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: server, namespace: pods-of-others}, spec: {containers: [{name: server, image: server}]}}`,
	} {
		cluster.apply(t, manifest(text))
	}
	program := f.build(t, "hub-agent")
	look := func(given values) string {
		all := must(t, "hub-agent", given)
		for _, object := range all {
			if _, is := object.(*batchv1.Job); is || !isHook(t, object) {
				continue
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			require.NoError(t, err)
			applied := &unstructured.Unstructured{Object: content}
			unstructured.RemoveNestedField(applied.Object, "metadata", "creationTimestamp")
			if applied.GetKind() != "Pod" { // that of helm test
				cluster.apply(t, applied)
			}
		}
		job := only[*batchv1.Job](t, all)
		account := &agent{account: job.Namespace + "/" + job.Spec.Template.Spec.ServiceAccountName}
		args := append(job.Spec.Template.Spec.Containers[0].Args, "--kubeconfig="+cluster.kubeconfig(t, account))
		said := ""
		await(t, "the account may list pods", func() bool {
			out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
			said = string(out)
			assert.Equal(t, err == nil, said == "", said)
			return !strings.Contains(said, "forbidden")
		})
		return said
	}
	assert.Regexp(t, "pods run on this cluster in .*pods-of-others.*, and would not be created again after they have ended", look(nil))
	assert.NotContains(t, look(values{"workloadNamespaces": []any{"pods-of-others"}}), "in pods-of-others")
	assert.NotContains(t, look(values{"guardRail": values{"reservedPrefixes": []any{"pods-"}}}), "pods-of-others")
}

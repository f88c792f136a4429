//go:build integration

package charts

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// TestInstalledPolicyLetsTheAgentAloneDeleteAppliedWorks has the policy of the member agent's chart on a cluster: an AppliedWork owns
// all that is placed for it.
func TestInstalledPolicyLetsTheAgentAloneDeleteAppliedWorks(t *testing.T) {
	loaded := load(t, "member-agent")
	c := bringUp(t).cluster(t, "member-1")
	c.applyCRDs(t, loaded)
	rendered := must(t, "member-agent", nil)
	policyName := release + "-applied-kept"
	for _, object := range []runtime.Object{
		named[*admissionv1.ValidatingAdmissionPolicy](t, rendered, policyName), named[*admissionv1.ValidatingAdmissionPolicyBinding](t, rendered, policyName),
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		require.NoError(t, err)
		c.apply(t, &unstructured.Unstructured{Object: content})
	}
	applied := manifest(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: AppliedWork, metadata: {name: kept}, spec: {workName: kept, workNamespace: fleet-member-member-1}}`)
	await(t, "there is an AppliedWork", func() bool {
		c.mapper.Reset()
		mapping, err := c.mapper.RESTMapping(applied.GroupVersionKind().GroupKind(), applied.GroupVersionKind().Version)
		if err != nil {
			return false // the definition is about to be served
		}
		_, err = c.dynamic.Resource(mapping.Resource).Create(t.Context(), applied, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})

	// It is tried as a user with the rights of an administrator of the cluster.
	try := func(user string, groups ...string) error {
		config := rest.CopyConfig(c.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:masters")}
		return newCluster(t, c.fleet, c.name, config).resource(t, applied.GroupVersionKind(), "").
			Delete(t.Context(), applied.GetName(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	}
	await(t, "the policy is in force", func() bool { return try("jane") != nil })
	const refusal = "deleting AppliedWork kept deletes everything that its Work has placed on this cluster"
	assert.ErrorContains(t, try("jane"), refusal)
	assert.ErrorContains(t, try("jane"), "delete the placement on the hub instead")
	assert.ErrorContains(t, try("system:serviceaccount:apps:mine", "system:serviceaccounts", "system:serviceaccounts:apps"), refusal)
	assert.ErrorContains(t, c.resource(t, applied.GroupVersionKind(), "").DeleteCollection(t.Context(),
		metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{}), refusal, "all at once")
	assert.NoError(t, try("system:serviceaccount:"+namespace+":"+release, "system:serviceaccounts", "system:serviceaccounts:"+namespace), "the agent")
	assert.NoError(t, try("system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccounts", "system:serviceaccounts:kube-system"))
	assert.NoError(t, try("system:kube-controller-manager"))

	applied.SetAnnotations(map[string]string{"fleetflow.io/allow-deletion": "true"})
	c.apply(t, applied)
	assert.NoError(t, try("jane"), "it is meant")
	c.delete(t, "placement.kubernetes-fleet.io/v1beta1", "AppliedWork", "kept")
	c.delete(t, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", policyName)
	c.delete(t, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", policyName)
}

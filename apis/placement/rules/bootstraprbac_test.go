package rules

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRolesOfKubernetesAreKnownByNameOrLabel(t *testing.T) {
	marked := map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}
	for sentence, test := range map[string]struct {
		kind   schema.GroupKind
		object metav1.ObjectMeta
		want   bool
	}{
		"a role by its name":                       {schema.GroupKind{Group: rbacGroup, Kind: "ClusterRole"}, metav1.ObjectMeta{Name: "system:node"}, true},
		"a binding by its name":                    {schema.GroupKind{Group: rbacGroup, Kind: "RoleBinding"}, metav1.ObjectMeta{Name: "system:x"}, true},
		"a role by its label":                      {schema.GroupKind{Group: rbacGroup, Kind: "ClusterRole"}, metav1.ObjectMeta{Name: "view", Labels: marked}, true},
		"not a role of a user":                     {schema.GroupKind{Group: rbacGroup, Kind: "ClusterRole"}, metav1.ObjectMeta{Name: "view-more"}, false},
		"not a role with another value":            {schema.GroupKind{Group: rbacGroup, Kind: "Role"}, metav1.ObjectMeta{Name: "x", Labels: map[string]string{"kubernetes.io/bootstrapping": "other"}}, false},
		"not an object of another group":           {schema.GroupKind{Kind: "ConfigMap"}, metav1.ObjectMeta{Name: "system:x", Labels: marked}, false},
		"not a role of an API of another provider": {schema.GroupKind{Group: "authorization.openshift.io", Kind: "ClusterRole"}, metav1.ObjectMeta{Name: "x"}, false},
	} {
		assert.Equal(t, test.want, IsBootstrapRBAC(test.kind, &test.object), sentence)
	}
}

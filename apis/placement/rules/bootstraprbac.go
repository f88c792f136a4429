package rules

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	rbacGroup = "rbac.authorization.k8s.io"
	// bootstrappingLabel marks the roles and bindings that an API server makes for itself and keeps as they are.
	bootstrappingLabel = "kubernetes.io/bootstrapping"
	bootstrappingRBAC  = "rbac-defaults"
	// systemPrefix begins the names that Kubernetes keeps for its own roles and bindings.
	systemPrefix = "system:"
)

// IsBootstrapRBAC reports whether an object is a role or a binding by which Kubernetes itself works. Every cluster has its own,
// and which rights they give depends on its version: they are neither placed nor taken over.
func IsBootstrapRBAC(kind schema.GroupKind, object metav1.Object) bool {
	return kind.Group == rbacGroup &&
		(strings.HasPrefix(object.GetName(), systemPrefix) || object.GetLabels()[bootstrappingLabel] == bootstrappingRBAC)
}

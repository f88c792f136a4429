package apply

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// everyKind stands for all kinds: of a group, or of all groups if it stands alone.
const everyKind = "*"

// kindWord is how kinds are written in manifests.
var kindWord = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// Veto is what the owner of a member does not let the fleet place, whatever the hub says. The zero
// value vetoes nothing.
type Veto struct {
	// AllowedKinds, if there are any, are the only kinds that may be placed.
	AllowedKinds []KindPattern
	// DeniedKinds may not be placed, even if they are allowed.
	DeniedKinds []KindPattern
	// DeniedNamespaces are namespaces that may not be placed, nor anything in them. One that ends
	// with "*" stands for all that begin with the rest.
	DeniedNamespaces []string
	// Namespaces, if there are any, are the only ones into which the agent may write, by its rights in
	// the cluster. Nothing cluster-scoped may be placed then, Namespaces included.
	Namespaces []string
}

// ownerOfCluster is who refuses what the flags of the agent deny.
const ownerOfCluster = "the owner of the cluster"

// KindPattern is a kind of any version, all kinds of a group, or all kinds.
type KindPattern schema.GroupKind

// ParseKindPattern reads Kind, Kind.group, *.group or *. A pattern that could never match anything
// is an error: it would let through what its author meant to refuse.
func ParseKindPattern(text string) (KindPattern, error) {
	kind, group, hasGroup := strings.Cut(text, ".")
	pattern := KindPattern{Group: group, Kind: kind}
	switch {
	case text == everyKind || kind == everyKind && group != "":
		return pattern, nil
	case !kindWord.MatchString(kind) || hasGroup && group == "":
		return KindPattern{}, errors.New("it must be a kind as in manifests, with the group if it has one, such as Secret or Deployment.apps, *.<group> for all kinds of a group, or *")
	case group == "" && !scheme.Scheme.Recognizes(corev1.SchemeGroupVersion.WithKind(kind)):
		return KindPattern{}, fmt.Errorf("the core group has no kind %s; name its group, as in Deployment.apps", kind)
	}
	return pattern, nil
}

func (p KindPattern) matchesKind(kind schema.GroupKind) bool {
	if p.Kind == everyKind {
		return p.Group == "" || p.Group == kind.Group
	}
	return schema.GroupKind(p) == kind
}

func matchesAny(patterns []KindPattern, kind schema.GroupKind) bool {
	return slices.ContainsFunc(patterns, func(p KindPattern) bool { return p.matchesKind(kind) })
}

// deniesNamespace reports whether a namespace is the owner's own. It is about the Namespace itself,
// too, because its labels and its deletion concern everything in it.
func (v Veto) deniesNamespace(id placementv1beta1.WorkResourceIdentifier) (string, bool) {
	namespace := id.Namespace
	if (KindOf(id) == schema.GroupKind{Kind: "Namespace"}) {
		namespace = id.Name
	}
	return namespace, namespace != "" && slices.ContainsFunc(v.DeniedNamespaces, func(denied string) bool {
		prefix, isPrefix := strings.CutSuffix(denied, "*")
		return denied == namespace || isPrefix && strings.HasPrefix(namespace, prefix)
	})
}

// problemOf returns why the owner of the cluster does not let the fleet place an object; nil if it may.
func (v Veto) problemOf(id placementv1beta1.WorkResourceIdentifier) *Problem {
	if len(v.Namespaces) > 0 && !slices.Contains(v.Namespaces, id.Namespace) {
		return &Problem{
			Reason: placementv1beta1.ReasonManifestApplyFailed, NoRetry: true, Refused: true, by: ownerOfCluster,
			Message: fmt.Sprintf("%s is not applied: the agent may only write to namespaces %s, which have to exist (--scope and --namespaces of the member agent). "+
				"Leave the object out of the placement, or delete it for this cluster by an override", KeyOf(id), strings.Join(v.Namespaces, ", ")),
		}
	}
	kind := KindOf(id)
	var why string
	if namespace, denied := v.deniesNamespace(id); denied {
		why = fmt.Sprintf("nothing may be placed into namespace %s (--denied-namespaces of the member agent)", namespace)
	} else if matchesAny(v.DeniedKinds, kind) {
		why = fmt.Sprintf("no %s may be placed (--denied-kinds of the member agent)", kind)
	} else if len(v.AllowedKinds) > 0 && !matchesAny(v.AllowedKinds, kind) {
		why = fmt.Sprintf("%s is none of the kinds that may be placed (--allowed-kinds of the member agent)", kind)
	} else {
		return nil
	}
	return &Problem{
		Reason: placementv1beta1.ReasonRefusedByMember, NoRetry: true, Refused: true, by: ownerOfCluster,
		Message: fmt.Sprintf("%s is refused by the owner of the cluster: %s. What the cluster has is left as it is. "+
			"Leave the object out of the placement, delete it for this cluster by an override, or ask the owner of the cluster to change veto in the values of the member agent's chart",
			KeyOf(id), why),
	}
}

// refusalOf returns why an object must be neither applied nor removed on this cluster; nil if it may.
// The object is a manifest or what the cluster has.
func (v Veto) refusalOf(id placementv1beta1.WorkResourceIdentifier, object metav1.Object) *Problem {
	if rules.IsBootstrapRBAC(KindOf(id), object) {
		return &Problem{
			Reason: placementv1beta1.ReasonReservedForKubernetes, NoRetry: true, Refused: true, by: "Kubernetes",
			Message: fmt.Sprintf("%s is refused: Kubernetes keeps it for itself, by its name or by the label kubernetes.io/bootstrapping, and it stays as it is whatever whenToTakeOver says. "+
				"Leave the object out of the placement, or give it a name of your own and no such label", KeyOf(id)),
		}
	}
	return v.problemOf(id)
}

// MarkRefused gives each manifest that the cluster does not let the fleet place the reason why.
func (v Veto) MarkRefused(manifests []Manifest) {
	for i := range manifests {
		if m := &manifests[i]; m.Problem == nil {
			m.Problem = v.refusalOf(m.Identifier, m.Object)
		}
	}
}

package hub

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// gateSources returns what closes clusters, and what lets rollouts go despite that. Not every user may read them, and not every hub
// has them: what is shown without them is true, too.
func gateSources() []Source {
	return []Source{
		{"holds", &fleetflowv1alpha1.RolloutHold{}, func() client.ObjectList { return &fleetflowv1alpha1.RolloutHoldList{} }, nil, true},
		{"windows", &fleetflowv1alpha1.RolloutWindow{}, func() client.ObjectList { return &fleetflowv1alpha1.RolloutWindowList{} }, nil, true},
		{"exemptions", &fleetflowv1alpha1.RolloutExemption{}, func() client.ObjectList { return &fleetflowv1alpha1.RolloutExemptionList{} },
			nil, true},
	}
}

// namespaceSources returns the Namespace of a rollout, by whose labels holds and windows select; none for what is in no namespace.
func namespaceSources(name string) []Source {
	if name == "" {
		return nil
	}
	return []Source{namespacesNamed(name)}
}

// namespacesNamed returns the Namespace of a name, or all without one, and no more of them than the metadata.
func namespacesNamed(name string) Source {
	source := Source{"namespaces", hubread.NamespaceMetadata(""), func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
		return list
	}, nil, true}
	if name != "" {
		source.options = []client.ListOption{client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)}}
	}
	return source
}

// Gates reads the holds, windows and exemptions of the hub; of a kind that may not be read there are none.
func (r Reader) Gates(ctx context.Context) ([]fleetflowv1alpha1.RolloutHold, []fleetflowv1alpha1.RolloutWindow, []fleetflowv1alpha1.RolloutExemption, error) {
	var holds fleetflowv1alpha1.RolloutHoldList
	var windows fleetflowv1alpha1.RolloutWindowList
	var exemptions fleetflowv1alpha1.RolloutExemptionList
	for what, into := range map[string]client.ObjectList{"holds": &holds, "windows": &windows, "exemptions": &exemptions} {
		if err := listServed(ctx, r, what, into); err != nil && !apierrors.IsForbidden(err) {
			return nil, nil, nil, err
		}
	}
	return holds.Items, windows.Items, exemptions.Items, nil
}

// NamespaceLabels reads the labels of the Namespaces, by name; of what may not be read there are none.
func (r Reader) NamespaceLabels(ctx context.Context) (map[string]map[string]string, error) {
	objects, err := Load(ctx, r, []Source{namespacesNamed("")})
	labels := map[string]map[string]string{}
	for _, namespace := range objects {
		labels[namespace.GetName()] = namespace.GetLabels()
	}
	return labels, err
}

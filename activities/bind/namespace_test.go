package bind_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func newReader(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := fixture.Scheme(t)
	require.NoError(t, corev1.AddToScheme(scheme))
	return fixture.NewClientBuilder(scheme).WithObjects(objects...).Build()
}

func TestWhatIsHeldOfAPlacementWhoseNamespaceEnds(t *testing.T) {
	at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(1_700_000_000+second, 0)} }
	accepted := func(p *placementv1beta1.ResourcePlacement, generation int64) {
		held := rules.NewHeldRemovals(p, []rules.HeldRemoval{{Binding: "b", Cluster: "member-1"}})
		p.Annotations = map[string]string{
			placementv1beta1.RemovalsHeldAnnotation: held.Encode(), placementv1beta1.RemovalsAcceptedAnnotation: held.Token(p),
		}
		p.Generation = generation
	}
	for sentence, test := range map[string]struct {
		deleted, ended *metav1.Time
		change         func(*placementv1beta1.ResourcePlacement)
		want           bool
	}{
		"neither ends":                        {},
		"the placement ends alone":            {deleted: at(5)},
		"the namespace ends":                  {ended: at(5), want: true},
		"the placement ends with it":          {ended: at(5), deleted: at(7), want: true},
		"both end in the same second":         {ended: at(5), deleted: at(5), want: true},
		"the placement was deleted before it": {ended: at(5), deleted: at(4)},
		"the placement opts out": {ended: at(5), deleted: at(7), change: func(p *placementv1beta1.ResourcePlacement) {
			p.Annotations = map[string]string{placementv1beta1.AcceptRemovalsAnnotation: "true"}
		}},
		"a user has accepted":                   {ended: at(5), deleted: at(7), change: func(p *placementv1beta1.ResourcePlacement) { accepted(p, 1) }},
		"a user has accepted before it changed": {ended: at(5), deleted: at(7), change: func(p *placementv1beta1.ResourcePlacement) { accepted(p, 2) }, want: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", DeletionTimestamp: test.ended}}
			if test.ended != nil {
				namespace.Finalizers = []string{"kubernetes"} // what is being deleted has one
			}
			placement := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid", Generation: 1, DeletionTimestamp: test.deleted}}
			if test.change != nil {
				test.change(placement)
			}
			hub := newReader(t, namespace)
			held, err := bind.HoldsWithNamespace(t.Context(), hub, placement)
			require.NoError(t, err)
			assert.Equal(t, test.want, held)
		})
	}
}

func TestNothingIsHeldOfPlacementsInNoNamespace(t *testing.T) {
	hub := newReader(t)
	for _, placement := range []placementv1beta1.PlacementObject{
		&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
		&placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "gone", Name: "web"}},
	} {
		held, err := bind.HoldsWithNamespace(t.Context(), hub, placement)
		require.NoError(t, err)
		assert.False(t, held)
	}
}

package apply

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1 "k8s.io/api/apps/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// answering answers a patch of a Deployment as an API server does.
type answering struct{ client.Client }

func (answering) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	out := object.(*unstructured.Unstructured)
	before, err := out.MarshalJSON()
	if err != nil {
		return err
	}
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	after, err := strategicpatch.StrategicMergePatch(before, data, appsv1.Deployment{})
	if err != nil {
		return err
	}
	return out.UnmarshalJSON(after)
}

// Create stores an object as it is.
func (answering) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }

// BenchmarkUnchanged is what a pass computes for a Deployment that is as its manifest says.
func BenchmarkUnchanged(b *testing.B) {
	const text = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n","labels":{"app":"a"}},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"a"}},
		"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],
		"ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{"limits":{"cpu":"1","memory":"1Gi"}}}]}}}}`
	m := Decode(raw(text))[0]
	require.Nil(b, m.Problem)
	there, _, err := Desired(m, me, nil)
	require.NoError(b, err)
	b.Run("merge", func(b *testing.B) {
		for b.Loop() {
			desired, _, _ := Desired(m, me, there)
			patch, err := ThreeWay(there, desired)
			if err != nil || !patch.Empty() {
				b.Fatal(err, string(patch.Data))
			}
		}
	})
	changed := Decode(raw(strings.Replace(text, `"value":"2"`, `"value":"3"`, 1)))[0]
	require.Nil(b, changed.Problem)
	engine := &Engine{Client: answering{}}
	b.Run("change", func(b *testing.B) {
		for b.Loop() {
			result, err := engine.writeContent(context.Background(), Request{Manifest: changed, Owner: me}, there)
			if err != nil || result.Object == there {
				b.Fatal(err)
			}
		}
	})
	b.Run("create", func(b *testing.B) {
		req := Request{Manifest: m, Owner: me, Strategy: placementv1beta1.ApplyStrategy{Type: clientSide}}
		for b.Loop() {
			if result, err := engine.create(context.Background(), req); err != nil || result.Answered != "" {
				b.Fatal(err)
			}
		}
	})
	b.Run("judge", func(b *testing.B) {
		for b.Loop() {
			if d := judgeAnswer(m, there); !d.Empty() {
				b.Fatal(d.Message)
			}
		}
	})
}

// An object that has all of its manifest is not merged, whichever way it was applied.
func TestWhatIsAsItsManifestSaysIsNotMerged(t *testing.T) {
	const text = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"a"}},
		"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","value":"1"}]}]}}}}`
	m := Decode(raw(text))[0]
	require.Nil(t, m.Problem)
	there := Marked(m, me)
	there.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1"}})
	wanted := Marked(m, me)
	require.True(t, isUpToDateServerSide(there, wanted))
	merge := testing.AllocsPerRun(10, func() { _, _ = threeWayPatch(nil, there, wanted) })
	require.Less(t, testing.AllocsPerRun(10, func() { isUpToDateServerSide(there, wanted) }), merge)
}

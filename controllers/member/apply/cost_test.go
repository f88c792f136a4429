package apply

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
	b.Run("judge", func(b *testing.B) {
		for b.Loop() {
			if d := judgeAnswer(m, there); !d.Empty() {
				b.Fatal(d.Message)
			}
		}
	})
}

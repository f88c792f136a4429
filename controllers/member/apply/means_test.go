package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// endless is a quantity that takes a program for hours to compute: a test that does ends with its timeout.
const endless = "1234567890123456789e1000000000"

func TestTextsThatLookLikeQuantitiesAreNotComputed(t *testing.T) {
	for _, other := range []string{"1", endless + "0", "-" + endless} {
		a := map[string]any{"data": map[string]any{"x": endless}}
		b := map[string]any{"data": map[string]any{"x": other}}
		assert.False(t, isEquivalent(&corev1.ConfigMap{}, a, b))
		assert.False(t, isEquivalent(&corev1.ConfigMap{}, b, a))
	}
	claim := func(name string) map[string]any {
		return map[string]any{"spec": map[string]any{"volumeName": name, "resources": map[string]any{"requests": map[string]any{"storage": endless}}}}
	}
	assert.False(t, isEquivalent(&corev1.PersistentVolumeClaim{}, claim(""), claim("")), "the same text twice is computed when it becomes an object")
}

func TestAnObjectWithAQuantityThatWouldTakeLongIsNotSent(t *testing.T) {
	engine, writes := newEngine(nil)
	req := request(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"namespace":"n","name":"a"},"spec":{"resources":{"requests":{"storage":"` + endless + `"}}}}`)
	for what, do := range map[string]func() (Result, *Problem, error){
		"applied":  func() (Result, *Problem, error) { return engine.Apply(t.Context(), req) },
		"compared": func() (Result, *Problem, error) { return engine.Diff(t.Context(), req) },
	} {
		_, problem, err := do()
		require.NoError(t, err, what)
		require.NotNil(t, problem, what)
		assert.Equal(t, placementv1beta1.ReasonDecodingErred, problem.Reason)
		assert.Contains(t, problem.Message, "field spec.resources.requests.storage is no quantity that can be read: its exponent has more than two digits")
		assert.True(t, problem.NoRetry)
	}
	assert.Zero(t, *writes)
}

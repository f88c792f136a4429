package quantity_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/fleetflow/fleetflow/apis/quantity"
)

// Texts that take a program for seconds up to days to compute. No test may compute one.
var endless = []string{
	"1234567890123456789e1000000000", "1234567890123456789e+1000000000", "-1234567890123456789E1000000000", "1e1000000000",
	"1234567890123456789e-1000000000", "0.1234567890123456789e1000000000", ".1e1000000000", "1234567890123456789e0000001000000000", "1e100",
	strings.Repeat("1", quantity.MaxLength+1),
}

func TestWhatWouldTakeLongIsNotComputed(t *testing.T) {
	for _, text := range endless {
		_, err := quantity.Parse(text)
		assert.Error(t, err, text)
		assert.False(t, len(text) <= quantity.MaxLength && regexp.MustCompile(quantity.Pattern).MatchString(text), "the definitions admit %s", text)
	}
}

func TestQuantitiesAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"5": "5", "500m": "500m", "10Gi": "10Gi", "1e3": "1e3", "1E": "1E", "12e18": "12e18", "-1.5": "-1500m", ".5": "500m", "+1": "+1", "0.5Gi": "512Mi",
		"1234567890123456789e99": "1234567890123456789e99",
	} {
		got, err := quantity.Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got.String(), text)
		assert.Regexp(t, quantity.Pattern, text)
	}
	for _, text := range []string{"", "abc", "1x", "1 ", "\n1", "1e", "0x10", "1,5"} {
		_, err := quantity.Parse(text)
		assert.Error(t, err, text)
	}
}

func TestQuantitiesAreFoundInContentByItsType(t *testing.T) {
	const text = "1234567890123456789e1000000000"
	claim := func(storage string) map[string]any {
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{"hash": text}}, "spec": map[string]any{
			"resources": map[string]any{"requests": map[string]any{"storage": storage}},
		}}
	}
	require.NoError(t, quantity.CheckContent(reflect.TypeFor[corev1.PersistentVolumeClaim](), claim("5Gi")))
	require.NoError(t, quantity.CheckContent(reflect.TypeFor[corev1.PersistentVolumeClaim](), claim("no quantity")))
	require.ErrorContains(t, quantity.CheckContent(reflect.TypeFor[*corev1.PersistentVolumeClaim](), claim(text)), "field spec.resources.requests.storage")
	for _, object := range []struct {
		of      reflect.Type
		content map[string]any
		path    string
	}{
		{reflect.TypeFor[corev1.PodSpec](), map[string]any{"containers": []any{map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": text}}}}}, "containers.0.resources.limits.cpu"},
		{reflect.TypeFor[corev1.PodSpec](), map[string]any{"volumes": []any{map[string]any{"emptyDir": map[string]any{"sizeLimit": text}}}}, "volumes.0.emptyDir.sizeLimit"},
		{reflect.TypeFor[corev1.LimitRange](), map[string]any{"spec": map[string]any{"limits": []any{map[string]any{"max": map[string]any{"cpu": text}}}}}, "spec.limits.0.max.cpu"},
		{reflect.TypeFor[autoscalingv2.HorizontalPodAutoscaler](), map[string]any{"spec": map[string]any{"metrics": []any{map[string]any{"object": map[string]any{"target": map[string]any{"value": text}}}}}},
			"spec.metrics.0.object.target.value"},
	} {
		assert.ErrorContains(t, quantity.CheckContent(object.of, object.content), "field "+object.path+" ")
	}
	require.NoError(t, quantity.CheckContent(reflect.TypeFor[corev1.ConfigMap](), map[string]any{"data": map[string]any{"a": text}}))
	require.NoError(t, quantity.CheckContent(reflect.TypeFor[corev1.PodSpec](), map[string]any{"containers": "no list"}), "what has another form is for the reader to refuse")
}

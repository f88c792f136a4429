package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	benchObjects = 10_000
	benchBytes   = 5 * 1024
)

// benchSelection is a namespace of objects as the API server returns them: half ConfigMaps, half Deployments, with
// managed fields and the annotation of kubectl apply, in no order.
func benchSelection(b *testing.B) []*unstructured.Unstructured {
	b.Helper()
	objects := make([]*unstructured.Unstructured, benchObjects)
	for i := range objects {
		o := &unstructured.Unstructured{}
		document := benchConfigMap(i)
		if i%2 == 0 {
			document = benchDeployment(i)
		}
		require.NoError(b, o.UnmarshalJSON([]byte(document)))
		objects[i] = o
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	return objects
}

func benchMetadata(i int) string {
	return fmt.Sprintf(`{"name":"object-%05d","namespace":"bench","uid":"5f0c%08d","resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z",
		"generation":3,"labels":{"app":"a%d","team":"b"},"annotations":{"kubectl.kubernetes.io/last-applied-configuration":%q,"owner":"c"},
		"managedFields":[{"manager":"kubectl","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:data":{"f:a":{},"f:b":{}}}}]}`,
		i, i, i, i%10, strings.Repeat("x", 1024))
}

func benchConfigMap(i int) string {
	data := make([]string, 0, 16)
	for key := range 16 {
		data = append(data, fmt.Sprintf(`"key-%02d":%q`, key, strings.Repeat(string(rune('a'+key)), (benchBytes-400)/16)))
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":%s,"data":{%s}}`, benchMetadata(i), strings.Join(data, ","))
}

func benchDeployment(i int) string {
	env := make([]string, 0, 80)
	for key := range 80 {
		env = append(env, fmt.Sprintf(`{"name":"VARIABLE_%02d","value":%q}`, key, strings.Repeat("v", 24)))
	}
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":%s,"spec":{"replicas":3,"selector":{"matchLabels":{"app":"a"}},
		"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"example.com/image:1","env":[%s]}]}}},
		"status":{"replicas":3,"conditions":[{"type":"Available","status":"True"}]}}`, benchMetadata(i), strings.Join(env, ","))
}

// BenchmarkSelection takes 10,000 objects of 5 KB from what was read to what is stored. It reports how much memory is
// in use at the end beyond the objects that went in, next to what all steps together have allocated.
func BenchmarkSelection(b *testing.B) {
	objects := benchSelection(b)
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "bench", UID: "uid"}}
	b.ReportAllocs()
	var before, after runtime.MemStats
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		candidates := make([]snapshot.Identity, 0, len(objects))
		for _, object := range objects {
			gk := object.GroupVersionKind().GroupKind()
			if snapshot.Candidate(gk, object) {
				candidates = append(candidates, snapshot.Identify(gk, object))
			}
		}
		content := contentOf(b, objects...)
		group := snapshot.Group(placement, 0, content)
		fingerprint := snapshot.Fingerprint(candidates)
		b.StopTimer()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB-peak")
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB-kept")
		b.ReportMetric(float64(len(group)), "parts")
		runtime.KeepAlive(content)
		runtime.KeepAlive(fingerprint)
		b.StartTimer()
	}
	runtime.KeepAlive(objects)
}

package analysis

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// How much of measurements a status keeps, of each metric, and of all of them.
const (
	keptOfEach    = 10
	keptOfAll     = 60
	worstOfAll    = 100
	shownOfQuery  = 1024
	shownOfWords  = 160
	shownOfHash   = 12
	leastOfMetric = 1
)

// Note keeps a measurement among the newest of its metric, of which there are as many as metrics leave room for.
func Note(counted *fleetflowv1alpha1.AnalysisMetricStatus, taken Measurement, at time.Time, query string, metrics int) {
	noted := fleetflowv1alpha1.AnalysisMeasurement{At: metav1.NewMicroTime(at), Outcome: taken.Outcome, Value: taken.Value,
		Message: Shorten(taken.Message, shownOfWords)}
	keep := max(leastOfMetric, min(keptOfEach, keptOfAll/max(metrics, 1)))
	counted.Last = append([]fleetflowv1alpha1.AnalysisMeasurement{noted}, counted.Last[:min(len(counted.Last), keep-1)]...)
	if taken.Clusters != nil {
		counted.Clusters = taken.Clusters.DeepCopy()
		counted.Clusters.Worst = counted.Clusters.Worst[:min(len(counted.Clusters.Worst), worstOfAll/max(metrics, 1))]
	}
	sum := sha256.Sum256([]byte(query))
	counted.Query = Shorten(query, shownOfQuery/max(1, metrics/10))
	counted.QueryHash = hex.EncodeToString(sum[:])[:shownOfHash]
}

package clusteraffinity

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// preferred is one preferred term.
type preferred struct {
	weight int32
	labels labels.Selector
	// sorter is nil where matching clusters earn the whole weight.
	sorter *sorter
}

// newPreferred reads the terms of a policy. The error is for the user.
func newPreferred(specs []placementv1beta1.PreferredClusterSelector) ([]preferred, error) {
	terms := make([]preferred, 0, len(specs))
	for i := range specs {
		spec := &specs[i].Preference
		field := fmt.Sprintf("affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution[%d].preference", i)
		if spec.PropertySelector != nil {
			return nil, fmt.Errorf("the scheduling policy has %s.propertySelector, which only required terms can have: move it there, or use propertySorter", field)
		}
		selector, err := newSelector(field, spec.LabelSelector)
		if err != nil {
			return nil, err
		}
		term := preferred{weight: specs[i].Weight, labels: selector}
		if spec.PropertySorter != nil {
			if term.sorter, err = newSorter(field, spec.PropertySorter); err != nil {
				return nil, err
			}
		}
		terms = append(terms, term)
	}
	return terms, nil
}

// weighCluster returns what the term adds to the score of a cluster.
func (t *preferred) weighCluster(cluster *clusterv1beta1.MemberCluster) int32 {
	switch {
	case !t.labels.Matches(labels.Set(cluster.Labels)):
		return 0
	case t.sorter == nil:
		return t.weight
	}
	return t.sorter.shareOfWeight(cluster, t.weight)
}

func (t *preferred) describeTerm(index int, cluster *clusterv1beta1.MemberCluster) string {
	name := fmt.Sprintf("preferred term %d adds %d of %d", index, t.weighCluster(cluster), t.weight)
	switch {
	case !t.labels.Matches(labels.Set(cluster.Labels)):
		return name + ": its labelSelector does not match"
	case t.sorter == nil:
		return name + ": its labelSelector matches"
	}
	return name + ": " + t.sorter.describeValue(cluster)
}

// sorter shares a weight out among clusters by the value of a property: all of it for
// the best value in the fleet, none for the worst, in proportion between them.
type sorter struct {
	name      string
	read      framework.PropertyReader
	ascending bool
	// low and high are the least and the greatest value in the fleet.
	low, high float64
}

func newSorter(field string, spec *placementv1beta1.PropertySorter) (*sorter, error) {
	s := &sorter{name: spec.Name, read: framework.NewPropertyReader(spec.Name)}
	switch spec.SortOrder {
	case placementv1beta1.Ascending:
		s.ascending = true
	case placementv1beta1.Descending:
	default:
		return nil, fmt.Errorf("the scheduling policy's %s.propertySorter.sortOrder %q is neither Ascending nor Descending", field,
			spec.SortOrder)
	}
	return s, nil
}

// surveyFleet finds the range of the property in a fleet, once for all cycles over it.
func (s *sorter) surveyFleet(c *framework.Cycle) {
	if known, ok := c.Ranges[s.name]; ok {
		s.low = known.Low
		s.high = known.High
		return
	}
	s.low = math.Inf(1)
	s.high = math.Inf(-1)
	for _, cluster := range c.Fleet {
		if value, ok := s.readValue(cluster); ok {
			s.low, s.high = min(s.low, value), max(s.high, value)
		}
	}
	if c.Ranges != nil {
		c.Ranges[s.name] = framework.Range{Low: s.low, High: s.high}
	}
}

func (s *sorter) readValue(cluster *clusterv1beta1.MemberCluster) (float64, bool) {
	value, ok := s.read(cluster)
	return value.AsApproximateFloat64(), ok
}

// shareOfWeight returns the part of the weight that a cluster earns, rounded. A cluster without the
// property earns none; nor does any if all have the same value.
func (s *sorter) shareOfWeight(cluster *clusterv1beta1.MemberCluster, weight int32) int32 {
	value, ok := s.readValue(cluster)
	if !ok || s.low >= s.high {
		return 0
	}
	distance := value - s.low
	if s.ascending {
		distance = s.high - value
	}
	// Multiplied before it is divided, what should come out whole does.
	return int32(math.Round(distance * float64(weight) / (s.high - s.low)))
}

func (s *sorter) describeValue(cluster *clusterv1beta1.MemberCluster) string {
	value, ok := s.readValue(cluster)
	switch {
	case !ok:
		return fmt.Sprintf("the cluster does not report %s as a quantity", s.name)
	case s.low >= s.high:
		return fmt.Sprintf("all clusters have the same %s, %v", s.name, value)
	case s.ascending:
		return fmt.Sprintf("%s is %v, the best in the fleet is %v and the worst %v", s.name, value, s.low, s.high)
	}
	return fmt.Sprintf("%s is %v, the best in the fleet is %v and the worst %v", s.name, value, s.high, s.low)
}

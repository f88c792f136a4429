package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/validate/content"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

func TestAnalysesOfTwoRunsNeverHaveOneName(t *testing.T) {
	assert.Equal(t, "web-canary-after", fleetflowv1alpha1.AnalysisRunName("", "web", "canary", "after"))
	assert.Equal(t, "web-canary-after.team.namespaced", fleetflowv1alpha1.AnalysisRunName("team", "web", "canary", "after"))
	parts := []string{"web", "team", "canary", "after", "namespaced"}
	var namespaces, runs []string
	for _, a := range parts {
		namespaces, runs = append(namespaces, a), append(runs, a)
		for _, b := range parts {
			namespaces, runs = append(namespaces, a+"-"+b), append(runs, a+"-"+b, a+"."+b)
			for _, c := range parts {
				namespaces, runs = append(namespaces, a+"-"+b+"-"+c), append(runs, a+"-"+b+"."+c, a+"."+b+"-"+c, a+"."+b+"."+c, a+"-"+b+"-"+c)
			}
		}
	}
	owners := map[string]string{}
	for _, namespace := range append(namespaces, "") {
		for _, run := range runs {
			for _, stage := range []string{"canary", "after", "namespaced"} {
				name, owner := fleetflowv1alpha1.AnalysisRunName(namespace, run, stage, "after"), fmt.Sprintf("%s/%s/%s", namespace, run, stage)
				if other := owners[name]; other != "" {
					t.Fatalf("%s is of %s and of %s", name, owner, other)
				}
				owners[name] = owner
			}
		}
	}
}

func TestTheLongestNameOfAnAnalysisIsOne(t *testing.T) {
	longest := strings.Repeat("a", 63)
	assert.Empty(t, content.IsDNS1123Subdomain(fleetflowv1alpha1.AnalysisRunName(longest, longest, longest, "during")))
}

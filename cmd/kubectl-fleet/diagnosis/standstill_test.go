package diagnosis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestThatNoHubAgentWorksIsSaidBesideWhatTheHubKnows(t *testing.T) {
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	lease := func(holder string, ago time.Duration) coordinationv1.Lease {
		renewed := metav1.NewMicroTime(now.Add(-ago))
		return coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed}}
	}
	for sentence, test := range map[string]struct {
		leases []coordinationv1.Lease
		says   string
	}{
		"an agent leads":                       {[]coordinationv1.Lease{lease("one", 5*time.Second)}, ""},
		"there never was an agent":             {nil, ""},
		"the agent has died":                   {[]coordinationv1.Lease{lease("one", 3*time.Minute)}, "no hub agent has worked for 3m: "},
		"the agent was stopped":                {[]coordinationv1.Lease{lease("", 5*time.Second)}, "no hub agent has worked for 5s: "},
		"another of two agents leads":          {[]coordinationv1.Lease{lease("one", 3*time.Minute), lease("two", time.Second)}, ""},
		"the last of two agents is told of":    {[]coordinationv1.Lease{lease("one", time.Hour), lease("two", time.Minute)}, "no hub agent has worked for 60s: "},
		"when the agent last worked is hidden": {[]coordinationv1.Lease{{}}, "no hub agent has worked for an unknown time: "},
	} {
		t.Run(sentence, func(t *testing.T) {
			said := describeStandstill(&Facts{Leases: test.leases}, now)
			if test.says == "" {
				assert.Empty(t, said)
				return
			}
			assert.Contains(t, said, test.says)
		})
	}
}

package notification

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
)

// flood has records of many runs.
type flood struct {
	all []fleetflowv1alpha1.AuditRecord
}

func (f *flood) Watch(_ context.Context, seen func(*fleetflowv1alpha1.AuditRecord), _ func(string)) error {
	for i := range f.all {
		seen(&f.all[i])
	}
	return nil
}

// A rule that matches everything, in an outage of a fleet of 5,000 clusters: 400 runs are stuck, held and fail at once. Slack gets one
// message, and of a few runs one each.
func TestAnOutageOfTheFleetIsOneMessage(t *testing.T) {
	for name, test := range map[string]struct {
		runs, posts int
		title       string
	}{
		"400 runs": {400, 1, "1200 records of 400 objects"},
		"20 runs":  {20, 20, "Run app-0 has failed (placement web)"},
	} {
		t.Run(name, func(t *testing.T) {
			posts := make(chan string, 1000)
			r := &received{}
			r.answer = func(http.ResponseWriter, *http.Request) { posts <- r.bodies[len(r.bodies)-1] }
			channel := channelNamed("chat", fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack, Slack: &fleetflowv1alpha1.SlackChannel{URLSecret: new(key("chat"))}})
			rule := ruleTo("all", "chat")
			rule.Spec.Group = &fleetflowv1alpha1.NotificationGroup{Window: &fleetflowv1alpha1.Duration{Duration: time.Second}}
			w := newWorld(t, channel, rule, secretFor("chat", map[string]string{"value": serve(t, r)}))
			f := &flood{}
			for run := range test.runs {
				for n, kind := range []fleetflowv1alpha1.AuditRecordType{fleetflowv1alpha1.RecordRunStuck, fleetflowv1alpha1.RecordRunHeld, fleetflowv1alpha1.RecordRunFailed} {
					record := w.fact(fmt.Sprintf("app-%d", run), kind, func(s *fleetflowv1alpha1.AuditRecordSpec) { s.Sequence = int64(n + 1) })
					record.CreationTimestamp = metav1.NewTime(time.Now())
					f.all = append(f.all, record)
				}
			}
			engine := delivery.NewEngine(w.client, w.client, f, clock.RealClock{}, logr.Discard())
			w.Routes = engine
			w.look(t, channel)
			w.look(t, rule)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- engine.Start(ctx) }()
			for range test.posts {
				var body slackMessage
				require.NoError(t, json.Unmarshal([]byte(<-posts), &body))
				if test.posts == 1 {
					assert.Equal(t, test.title, body.Text)
				}
			}
			stop()
			require.NoError(t, <-ended)
			assert.Empty(t, posts)
			assert.Len(t, r.bodies, test.posts)
		})
	}
}

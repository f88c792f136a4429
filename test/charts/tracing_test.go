package charts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTracesGoToACollectorThatIsNamed(t *testing.T) {
	for _, name := range []string{"hub-agent", "member-agent"} {
		t.Run(name, func(t *testing.T) {
			for _, flag := range []string{"--otlp-", "--trace-"} {
				assert.NotContains(t, strings.Join(args(t, must(t, name, nil), release), " "), flag, "there are none by default")
			}
			all := must(t, name, values{"tracing": values{"endpoint": "collector.monitoring:4317"}})
			assert.Subset(t, args(t, all, release), []string{
				"--otlp-endpoint=collector.monitoring:4317", "--otlp-insecure=false", "--trace-sample-ratio=1",
			})
			all = must(t, name, values{"tracing": values{"endpoint": "collector:4317", "insecure": true, "sampleRatio": 0.05}})
			assert.Subset(t, args(t, all, release), []string{"--otlp-endpoint=collector:4317", "--otlp-insecure=true", "--trace-sample-ratio=0.05"})
		})
	}
}

func TestWorkersOfTheirOwnAreTracedToo(t *testing.T) {
	all := must(t, "hub-agent", values{"workers": values{"enabled": true}, "tracing": values{"endpoint": "collector:4317"}})
	for _, name := range []string{release, release + "-workers"} {
		assert.Contains(t, args(t, all, name), "--otlp-endpoint=collector:4317")
	}
}

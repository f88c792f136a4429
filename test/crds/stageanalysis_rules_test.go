package crds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRulesOfStageAnalyses(t *testing.T) {
	k := loadKind(t, "StageAnalysis")
	const query = `prometheus: {sourceRef: {name: central}, query: up}`
	for name, tc := range map[string]struct{ spec, refusal string }{
		"a query and a bound":  {spec: `{metrics: [{name: up, ` + query + `, success: result > 0.0}]}`},
		"all of it":            {spec: `{args: [{name: app}, {name: max, default: "0.01"}], metrics: [{name: up, ` + query + `, perCluster: {label: cluster, minPassing: 95%, missing: Failure}, success: result > 0.0, failure: result < 0.0, noData: Success, initialDelay: 2m, interval: 1m, count: 10, failureLimit: 2, consecutiveFailureLimit: 2, inconclusiveLimit: 3, consecutiveErrorLimit: 4, consecutiveSuccessLimit: 3, dryRun: true}, {name: smoke, webhook: {sourceRef: {name: smoke}, path: "/check/$(args.app)", body: {suite: canary}}}]}`},
		"a comparison":         {spec: `{metrics: [{name: up, prometheus: {sourceRef: {name: central}, query: a, baselineQuery: b}, success: result <= baseline}]}`},
		"no provider":          {spec: `{metrics: [{name: up, success: result > 0.0}]}`, refusal: "exactly one of prometheus, webhook, objects and job"},
		"two providers":        {spec: `{metrics: [{name: up, ` + query + `, webhook: {sourceRef: {name: a}}, success: result > 0.0}]}`, refusal: "exactly one of prometheus, webhook, objects and job"},
		"no bound":             {spec: `{metrics: [{name: up, ` + query + `}]}`, refusal: "needs success or failure"},
		"no interval":          {spec: `{metrics: [{name: up, ` + query + `, success: result > 0.0, count: 2}]}`, refusal: "a count above 1 needs an interval"},
		"a short interval":     {spec: `{metrics: [{name: up, ` + query + `, success: result > 0.0, count: 2, interval: 4s}]}`, refusal: "interval must be 5s to 30 days"},
		"too long":             {spec: `{metrics: [{name: up, ` + query + `, success: result > 0.0, count: 721, interval: 1h}]}`, refusal: "30 days at most"},
		"two of a name":        {spec: `{metrics: [{name: up, ` + query + `, success: result > 0.0}, {name: up, ` + query + `, success: result > 0.0}]}`, refusal: "Duplicate value"},
		"a way out":            {spec: `{metrics: [{name: up, webhook: {sourceRef: {name: a}, path: /../admin}}]}`, refusal: "path must not have .. in it"},
		"an argument's value":  {spec: `{args: [{name: app, default: "a\"} or vector(0)"}], metrics: [{name: up, ` + query + `, success: result > 0.0}]}`, refusal: "default in body should match"},
		"objects on clusters":  {spec: `{metrics: [{name: ready, objects: {from: Works, apiVersion: apps/v1, kind: Deployment, namespace: web, name: $(args.app)}, perCluster: {}, success: "object.spec.replicas > 0"}]}`},
		"an object of a hub":   {spec: `{metrics: [{name: ready, objects: {from: Hub, apiVersion: v1, kind: Node, name: a}, success: "object.spec.unschedulable"}]}`},
		"a Secret":             {spec: `{metrics: [{name: a, objects: {from: Hub, apiVersion: v1, kind: Secret, namespace: a, name: a}, success: "object.data.a == args.a"}]}`, refusal: "no metric reads a Secret"},
		"a Secret of a Work":   {spec: `{metrics: [{name: a, objects: {from: Works, apiVersion: v1, kind: Secret, namespace: a, name: a}, perCluster: {}, success: "object.data.a == args.a"}]}`, refusal: "no metric reads a Secret"},
		"what holds Secrets":   {spec: `{metrics: [{name: a, objects: {from: Hub, apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: Work, namespace: fleet-member-a, name: a}, success: "true"}]}`, refusal: "no metric reads what holds copies of Secrets"},
		"no perCluster":        {spec: `{metrics: [{name: a, objects: {from: Works, apiVersion: v1, kind: Service, namespace: a, name: a}, success: "true"}]}`, refusal: "objects from Works need perCluster"},
		"a needless one":       {spec: `{metrics: [{name: a, objects: {from: Hub, apiVersion: v1, kind: Service, namespace: a, name: a}, perCluster: {}, success: "true"}]}`, refusal: "perCluster needs prometheus"},
		"a path for a name":    {spec: `{metrics: [{name: a, objects: {from: Hub, apiVersion: v1, kind: Service, namespace: a, name: a/b}, success: "true"}]}`, refusal: "name in body should match"},
		"observations":         {spec: `{metrics: [{name: a, prometheus: {sourceRef: {name: central}, query: a, minSamples: 100, samplesQuery: b}, success: "result < 1.0"}]}`},
		"observations of what": {spec: `{metrics: [{name: a, prometheus: {sourceRef: {name: central}, query: a, minSamples: 100}, success: "result < 1.0"}]}`, refusal: "minSamples and samplesQuery go together"},
		"a job":                {spec: `{metrics: [{name: e2e, job: {namespace: jobs, fromCronJob: e2e, timeout: 15m}}]}`},
		"a job with a bound":   {spec: `{metrics: [{name: e2e, job: {namespace: jobs, fromCronJob: e2e}, success: "true"}]}`, refusal: "the Job succeeds or fails itself"},
		"an endless job":       {spec: `{metrics: [{name: e2e, job: {namespace: jobs, fromCronJob: e2e, timeout: 48h}}]}`, refusal: "timeout must be 1s to 24h"},
		"clusters of a hook":   {spec: `{metrics: [{name: up, webhook: {sourceRef: {name: a}}, perCluster: {}}]}`, refusal: "perCluster needs prometheus"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := k.admit(t, "apiVersion: fleetflow.io/v1alpha1\nkind: StageAnalysis\nmetadata: {name: a}\nspec: "+tc.spec+"\n", "")
			if tc.refusal == "" {
				assert.Empty(t, errs)
				return
			}
			assert.Contains(t, errs.ToAggregate().Error(), tc.refusal)
		})
	}
}

func TestRulesOfMetricSources(t *testing.T) {
	k := loadKind(t, "MetricSource")
	for name, tc := range map[string]struct{ spec, refusal string }{
		"an address":                {spec: `{type: Prometheus, url: "https://prometheus.monitoring.svc:9090"}`},
		"all of it":                 {spec: `{type: Webhook, url: "http://smoke.test/hooks", allowPlainText: true, auth: {type: Basic, username: {name: s, key: u}, secret: {name: s, key: k}}, tls: {caSecret: {name: s, key: ca}, serverName: a}, limits: {maxConcurrent: 1, requestsPerSecond: 1, timeout: 30s, maxResponseBytes: 4096}, allowedTemplates: {matchLabels: {team: web}}}`},
		"for no namespace":          {spec: `{type: Prometheus, url: "https://prometheus", allowedNamespaces: []}`},
		"for an empty one":          {spec: `{type: Prometheus, url: "https://prometheus", allowedNamespaces: [""]}`, refusal: "allowedNamespaces[0] in body should be at least 1 chars long"},
		"plain text":                {spec: `{type: Prometheus, url: "http://prometheus:9090"}`, refusal: "url has to begin with https://"},
		"another scheme":            {spec: `{type: Prometheus, url: "file:///etc/passwd", allowPlainText: true}`, refusal: "url must be like"},
		"a credential":              {spec: `{type: Prometheus, url: "https://user:word@prometheus"}`, refusal: "url must be like"},
		"a query":                   {spec: `{type: Prometheus, url: "https://prometheus/?a=b"}`, refusal: "url must be like"},
		"no secret":                 {spec: `{type: Prometheus, url: "https://prometheus", auth: {type: Bearer}}`, refusal: "needs a secret"},
		"a secret for none":         {spec: `{type: Prometheus, url: "https://prometheus", auth: {type: None, secret: {name: a, key: b}}}`, refusal: "needs a secret"},
		"a certificate":             {spec: `{type: Prometheus, url: "https://prometheus", auth: {type: ClientCert, secret: {name: a, key: tls.crt}, privateKey: {name: a, key: tls.key}}}`},
		"half of one":               {spec: `{type: Prometheus, url: "https://prometheus", auth: {type: ClientCert, secret: {name: a, key: tls.crt}}}`, refusal: "ClientCert needs a privateKey"},
		"a name and a password":     {spec: `{type: Prometheus, url: "https://prometheus", auth: {type: Basic, username: {name: a, key: username}, secret: {name: a, key: password}}}`},
		"a password of no name":     {spec: `{type: Prometheus, url: "https://prometheus", auth: {type: Basic, secret: {name: a, key: b}}}`, refusal: "Basic needs a username"},
		"a name with a token":       {spec: `{type: Prometheus, url: "https://prometheus", auth: {type: Bearer, username: {name: a, key: b}, secret: {name: a, key: b}}}`, refusal: "Basic needs a username"},
		"authorities of all":        {spec: `{type: Prometheus, url: "https://prometheus", tls: {caConfigMap: {name: a, key: ca.crt}}}`},
		"authorities in two places": {spec: `{type: Prometheus, url: "https://prometheus", tls: {caSecret: {name: a, key: b}, caConfigMap: {name: a, key: b}}}`, refusal: "remove caSecret or caConfigMap"},
		"a plain one":               {spec: `{type: Prometheus, url: "http://prometheus", allowPlainText: true, auth: {type: ClientCert, secret: {name: a, key: tls.crt}, privateKey: {name: a, key: tls.key}}}`, refusal: "ClientCert needs a url that begins with https://"},
		"a signature":               {spec: `{type: Webhook, url: "https://smoke", auth: {type: HMAC, secret: {name: a, key: b}}}`},
		"a signed query":            {spec: `{type: Prometheus, url: "https://prometheus", auth: {type: HMAC, secret: {name: a, key: b}}}`, refusal: "HMAC signs webhooks"},
		"an endless timeout":        {spec: `{type: Prometheus, url: "https://prometheus", limits: {timeout: 2m}}`, refusal: "timeout must be 100ms to 1m"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := k.admit(t, "apiVersion: fleetflow.io/v1alpha1\nkind: MetricSource\nmetadata: {name: a}\nspec: "+tc.spec+"\n", "")
			if tc.refusal == "" {
				assert.Empty(t, errs)
				return
			}
			assert.Contains(t, errs.ToAggregate().Error(), tc.refusal)
		})
	}
}

// A Secret for a source has its name as the value of a label.
func TestTheNameOfASourceFitsIntoALabel(t *testing.T) {
	const manifest = "apiVersion: fleetflow.io/v1alpha1\nkind: MetricSource\nmetadata: {name: %s}\nspec: {type: Prometheus, url: \"https://prometheus\"}\n"
	k := loadKind(t, "MetricSource")
	_, errs := k.admit(t, fmt.Sprintf(manifest, strings.Repeat("a", 63)), "")
	assert.Empty(t, errs)
	_, errs = k.admit(t, fmt.Sprintf(manifest, strings.Repeat("a", 64)), "")
	assert.Contains(t, texts(errs), "metadata.name has more than 63 characters")
}

func TestRulesOfTasksThatAnalyse(t *testing.T) {
	for _, kind := range []string{"ClusterStagedUpdateStrategy", "StagedUpdateStrategy"} {
		k := loadKind(t, kind)
		for name, tc := range map[string]struct{ tasks, refusal string }{
			"after a stage":       {tasks: `afterStageTasks: [{type: TimedWait, waitTime: 1m}, {type: Analysis, analysis: {templates: [{name: a}], args: [{name: max, value: "1"}], onFailure: Rollback, onInconclusive: Proceed, onError: Abort, dryRun: true}}, {type: Approval}]`},
			"before it":           {tasks: `beforeStageTasks: [{type: Analysis, analysis: {templates: [{name: a}]}}, {type: Approval}]`},
			"during it":           {tasks: `duringStageTasks: [{type: Analysis, analysis: {templates: [{name: a}], onFailure: Rollback}}]`},
			"a wait during it":    {tasks: `duringStageTasks: [{type: TimedWait, waitTime: 1m}]`, refusal: "one task of type Analysis only"},
			"two during it":       {tasks: `duringStageTasks: [{type: Analysis, analysis: {templates: [{name: a}]}}, {type: Analysis, analysis: {templates: [{name: b}]}}]`, refusal: "must have at most 1 item"},
			"an approval then":    {tasks: `afterStageTasks: [{type: TimedWait, waitTime: 1m}, {type: Analysis, analysis: {templates: [{name: a}]}}, {type: Approval, startsAfter: [TimedWait, Analysis]}]`},
			"after what is not":   {tasks: `afterStageTasks: [{type: TimedWait, waitTime: 1m}, {type: Approval, startsAfter: [Analysis]}]`, refusal: "startsAfter of afterStageTasks names a type that no other task of the stage has"},
			"after itself":        {tasks: `afterStageTasks: [{type: Approval, startsAfter: [Approval]}]`, refusal: `supported values: "TimedWait", "Analysis"`},
			"a wait that waits":   {tasks: `afterStageTasks: [{type: Analysis, analysis: {templates: [{name: a}]}}, {type: TimedWait, waitTime: 1m, startsAfter: [Analysis]}]`, refusal: "startsAfter is only valid for tasks of type Approval"},
			"without templates":   {tasks: `afterStageTasks: [{type: Analysis}]`, refusal: "a task of type Analysis needs analysis"},
			"no templates":        {tasks: `afterStageTasks: [{type: Analysis, analysis: {templates: []}}]`, refusal: "should have at least 1 items"},
			"of another type":     {tasks: `afterStageTasks: [{type: Approval, analysis: {templates: [{name: a}]}}]`, refusal: "no other task has it"},
			"with a time":         {tasks: `afterStageTasks: [{type: Analysis, waitTime: 1m, analysis: {templates: [{name: a}]}}]`, refusal: "a task of type Analysis has no waitTime"},
			"two of them":         {tasks: `afterStageTasks: [{type: Analysis, analysis: {templates: [{name: a}]}}, {type: Analysis, analysis: {templates: [{name: b}]}}]`, refusal: "at most one task of each type"},
			"two before":          {tasks: `beforeStageTasks: [{type: Approval}, {type: Approval}]`, refusal: "at most one task of each type"},
			"back on an error":    {tasks: `afterStageTasks: [{type: Analysis, analysis: {templates: [{name: a}], onError: Rollback}}]`, refusal: `supported values: "Pause", "Abort", "Proceed"`},
			"a value that quotes": {tasks: `afterStageTasks: [{type: Analysis, analysis: {templates: [{name: a}], args: [{name: max, value: 'a"b'}]}}]`, refusal: "value in body should match"},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				_, errs := k.admit(t, "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: "+kind+"\nmetadata: {name: a, namespace: a}\nspec: {stages: [{name: canary, "+tc.tasks+"}]}\n", "")
				if tc.refusal == "" {
					assert.Empty(t, errs)
					return
				}
				assert.Contains(t, errs.ToAggregate().Error(), tc.refusal)
			})
		}
	}
}

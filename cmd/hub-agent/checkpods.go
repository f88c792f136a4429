package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
)

// checkPodsCommand looks for pods that a hub without workloads would not let come back.
const checkPodsCommand = "check-pods"

// podsAtOnce is how many pods the hub returns at a time.
const podsAtOnce = 500

// podCheck is what the chart says about the pods of the hub.
type podCheck struct {
	// refused says in CEL, as the chart's policy does, whether new pods of a namespace are refused.
	refused string
	// named are the workloadNamespaces of the chart's values.
	named      string
	kubeconfig string
}

// checkPods is for a Job before the chart is applied by those who render it without a cluster, as Argo CD does: the chart itself then
// sees no pods. It returns an error if there are pods that would not be created again.
func checkPods(ctx context.Context, args []string, out io.Writer) error {
	check := podCheck{}
	f := flag.NewFlagSet(checkPodsCommand, flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&check.refused, "refused", "", "CEL of the variable name: whether new pods in it are refused. Required")
	f.StringVar(&check.named, "workload-namespaces", "", "workloadNamespaces of the chart's values, separated by commas")
	f.StringVar(&check.kubeconfig, "kubeconfig", "", "kubeconfig of the hub; the Pod's service account is used if empty")
	if err := f.Parse(args); err != nil {
		return err
	}
	refuses, err := refusal(check.refused)
	if err != nil {
		return fmt.Errorf("--refused is %q: %w", check.refused, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", check.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading how to reach the hub: %w", err)
	}
	hub, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	with, err := namespacesWithPods(ctx, hub)
	if err != nil {
		return err
	}
	var ending []string
	for _, namespace := range with {
		is, err := refuses(namespace)
		if err != nil {
			return fmt.Errorf("--refused is %q: %w", check.refused, err)
		}
		if is {
			ending = append(ending, namespace)
		}
	}
	if len(ending) == 0 {
		return nil
	}
	return fmt.Errorf("pods run on this cluster in %s, and would not be created again after they have ended: with enableWorkload=false the hub refuses new pods there. "+
		"Set workloadNamespaces: [%s] in the values of the hub agent's chart, or enableWorkload: true", strings.Join(ending, ", "),
		strings.Join(union(check.named, ending), ", "))
}

// union returns the namespaces that the values name, and others after them.
func union(named string, others []string) []string {
	if named == "" {
		return others
	}
	return append(strings.Split(named, ","), others...)
}

// refusal compiles an expression that says whether pods of a namespace are refused.
func refusal(expression string) (func(namespace string) (bool, error), error) {
	env, err := cel.NewEnv(cel.Variable("name", cel.StringType))
	if err != nil {
		return nil, err
	}
	compiled, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := env.Program(compiled)
	if err != nil {
		return nil, err
	}
	return func(namespace string) (bool, error) {
		value, _, err := program.Eval(map[string]any{"name": namespace})
		if err != nil {
			return false, err
		}
		is, ok := value.Value().(bool)
		if !ok {
			return false, fmt.Errorf("it is %v, neither true nor false", value)
		}
		return is, nil
	}, nil
}

// namespacesWithPods returns the namespaces with pods that have not ended, in order.
func namespacesWithPods(ctx context.Context, hub metadata.Interface) ([]string, error) {
	found := map[string]bool{}
	unfinished := fields.AndSelectors(fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))
	options := metav1.ListOptions{FieldSelector: unfinished.String(), Limit: podsAtOnce}
	for {
		page, err := hub.Resource(corev1.SchemeGroupVersion.WithResource("pods")).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing the pods of the hub: %w", err)
		}
		for i := range page.Items {
			found[page.Items[i].Namespace] = true
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return slices.Sorted(maps.Keys(found)), nil
		}
	}
}

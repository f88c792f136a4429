// Command policies keeps the NetworkPolicies of a cluster for the Pods of its one real node: of each connection that the node's kernel asks
// about in a queue, it decides by the policies. The rules that put connections into the queue are another's.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

func main() {
	server := flag.String("server", "", "the URL of the API server")
	kubeconfig := flag.String("kubeconfig", "", "as whom, and whose certificate the API server has")
	node := flag.String("node", "", "the name of the node")
	queue := flag.Int("queue", 100, "the number of the queue") //nolint:mnd // the one that is usual
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *server, *kubeconfig, *node, *queue); err != nil {
		fmt.Fprintln(os.Stderr, "policies:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, server, kubeconfig, node string, queue int) error {
	config, err := clientcmd.BuildConfigFromFlags(server, kubeconfig)
	if err != nil {
		return fmt.Errorf("reading how the API server is reached: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	seen := informers.NewSharedInformerFactory(client, 0)
	controller, err := networkpolicy.NewController(client, seen.Networking().V1().NetworkPolicies(), seen.Core().V1().Namespaces(), seen.Core().V1().Pods(),
		nil, nil, nil, nil, networkpolicy.Config{QueueID: queue, NodeName: node})
	if err != nil {
		return fmt.Errorf("making what decides by policies: %w", err)
	}
	seen.Start(ctx.Done())
	return controller.Run(ctx)
}

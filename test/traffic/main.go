// Command traffic plays the requests that applications on the members of a local fleet would get, as KWOK plays their pods: nothing
// runs in those, so nothing of theirs could be measured. At each look of Prometheus it reads the Deployments of every member, as
// they are there by then, and counts ten requests a second for each replica that is ready. How many of them fail is what a
// Deployment says of its version in the annotation traffic.example.com/failing-percent.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// shutdownTimeout is how long an answer under way may take when the program ends.
const shutdownTimeout = time.Second

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file with a context for each member")
	members := flag.String("members", "", "names of the members' contexts, separated by commas")
	address := flag.String("address", "127.0.0.1:8080", "where /metrics is served")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *kubeconfig, strings.Split(*members, ","), *address); err != nil {
		fmt.Fprintln(os.Stderr, "traffic:", err)
		os.Exit(1)
	}
}

// serve serves the metrics until the context ends.
func serve(ctx context.Context, kubeconfig string, members []string, address string) error {
	clusters := map[string]kubernetes.Interface{}
	for _, member := range members {
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: member}).ClientConfig()
		if err != nil {
			return fmt.Errorf("reading how to reach %s: %w", member, err)
		}
		config.Timeout = lookTimeout
		if clusters[member], err = kubernetes.NewForConfig(config); err != nil {
			return fmt.Errorf("making a client of %s: %w", member, err)
		}
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(newPlayer(clusters, time.Now)); err != nil {
		return fmt.Errorf("registering what is counted: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: lookTimeout}
	context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		_ = server.Shutdown(ending) // the process ends anyway
	})
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// failingAnnotation of a Deployment is how many of a hundred requests its version fails; without it a Deployment gets none.
	failingAnnotation = "traffic.example.com/failing-percent"
	// perSecond is how many requests a ready replica gets.
	perSecond = 10
	// lookTimeout bounds the question to a member.
	lookTimeout = time.Second
)

var (
	labels   = []string{"cluster", "namespace", "app"}
	requests = prometheus.NewDesc("http_requests_total", "Requests that a Deployment has got.", labels, nil)
	failures = prometheus.NewDesc("http_errors_total", "Requests that a Deployment has failed.", labels, nil)
)

// application is a Deployment of a member.
type application struct{ cluster, namespace, name string }

// counts are what an application has got since it was first seen, and when it was looked at last.
type counts struct {
	requests, failures float64
	at                 time.Time
}

// player is a collector of metrics that counts when it is asked.
type player struct {
	clusters map[string]kubernetes.Interface
	now      func() time.Time

	mu      sync.Mutex
	counted map[application]counts
}

func newPlayer(clusters map[string]kubernetes.Interface, now func() time.Time) *player {
	return &player{clusters: clusters, now: now, counted: map[application]counts{}}
}

// Describe implements prometheus.Collector.
func (p *player) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- requests
	descriptions <- failures
}

// Collect implements prometheus.Collector. A member that does not answer has no metrics, as when it is really away.
func (p *player) Collect(metrics chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for cluster, client := range p.clusters {
		ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
		list, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		cancel()
		if err != nil {
			fmt.Fprintf(os.Stderr, "traffic: looking at %s: %v\n", cluster, err)
			continue
		}
		for i := range list.Items {
			p.collectFrom(cluster, &list.Items[i], metrics)
		}
	}
}

func (p *player) collectFrom(cluster string, deployment *appsv1.Deployment, metrics chan<- prometheus.Metric) {
	percent, err := strconv.ParseFloat(deployment.Annotations[failingAnnotation], 64)
	if err != nil {
		return // it is none of those that are played
	}
	app := application{cluster, deployment.Namespace, deployment.Name}
	now := p.now()
	counted := countOn(p.counted[app], now, deployment.Status.ReadyReplicas, percent)
	p.counted[app] = counted
	names := []string{app.cluster, app.namespace, app.name}
	metrics <- prometheus.MustNewConstMetric(requests, prometheus.CounterValue, counted.requests, names...)
	metrics <- prometheus.MustNewConstMetric(failures, prometheus.CounterValue, counted.failures, names...)
}

// countOn adds what so many replicas have got, and failed, since the last look. It is pure.
func countOn(c counts, now time.Time, replicas int32, failingPercent float64) counts {
	if !c.at.IsZero() {
		got := perSecond * float64(replicas) * now.Sub(c.at).Seconds()
		c.requests += got
		c.failures += got * failingPercent / 100
	}
	c.at = now
	return c
}

package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validFor is long enough for any local fleet: one that is older is made anew.
const validFor = 5 * 365 * 24 * time.Hour

// writePKI makes the certificates of a cluster in a folder unless they are there: a CA, the API server's serving
// certificate, and the key that signs service account tokens.
func writePKI(dir, cluster string, now time.Time) error {
	if _, err := os.Stat(filepath.Join(dir, "service-account.key")); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the certificate folder of %s: %w", cluster, err)
	}
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "fleetflow-" + cluster + "-ca"},
		IsCA:    true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	caKey, err := issue(filepath.Join(dir, "ca"), ca, ca, nil, now)
	if err != nil {
		return fmt.Errorf("making the CA of %s: %w", cluster, err)
	}
	serving := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if _, err := issue(filepath.Join(dir, "apiserver"), serving, ca, caKey, now); err != nil {
		return fmt.Errorf("making the serving certificate of %s: %w", cluster, err)
	}
	// Last: its presence says that the folder is complete.
	if _, err := writeKey(filepath.Join(dir, "service-account.key")); err != nil {
		return fmt.Errorf("making the service account key of %s: %w", cluster, err)
	}
	return nil
}

// issue writes <path>.crt and <path>.key. Without a parent's key the certificate signs itself.
func issue(path string, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey, now time.Time) (*ecdsa.PrivateKey, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(validFor)
	key, err := writeKey(path + ".key")
	if err != nil {
		return nil, err
	}
	if parentKey == nil {
		parentKey = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	return key, writePEM(path+".crt", "CERTIFICATE", der)
}

func writeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return key, writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	content := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	return nil
}

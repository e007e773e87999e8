import com.sun.xml.ws.developer.JAXWSProperties;

import jakarta.jws.WebMethod;
import jakarta.jws.WebService;
import jakarta.xml.ws.BindingProvider;
import jakarta.xml.ws.Service;

import java.net.URI;

import javax.xml.namespace.QName;

/** `Node HOST PORT WARM CALLS`: calls per second of a loop on a JAX-WS proxy, without a kit. */
public final class Node {
    private static final String NAMESPACE = "urn:wattwire";
    private static final String TEXT = "Hello World";

    private Node() {}

    /** What of the cell's procedures is called here. */
    @WebService(name = "Calls", targetNamespace = NAMESPACE)
    public interface Calls {
        @WebMethod
        String echo(String data);
    }

    public static void main(String[] arguments) throws Exception {
        String address = "http://" + arguments[0] + ":" + arguments[1] + "/calls";
        int warm = Integer.parseInt(arguments[2]);
        int calls = Integer.parseInt(arguments[3]);
        Calls port =
                Service.create(
                                URI.create(address + "?wsdl").toURL(),
                                new QName(NAMESPACE, "CallsService"))
                        .getPort(Calls.class);
        ((BindingProvider) port).getRequestContext().put(JAXWSProperties.REQUEST_TIMEOUT, 5000);
        call(port);
        System.out.println("begun");
        System.out.flush();
        for (int i = 0; i < warm; i++) call(port);
        long startNs = System.nanoTime();
        System.out.println("warm");
        System.out.flush();
        for (int i = 0; i < calls; i++) call(port);
        System.out.println(calls * 1e9 / (System.nanoTime() - startNs));
    }

    private static void call(Calls port) {
        String found = port.echo(TEXT);
        if (found.equals(TEXT)) return;
        System.err.println(found + ", not " + TEXT);
        System.exit(1);
    }
}

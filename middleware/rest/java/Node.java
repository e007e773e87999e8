import web.Cell;

/** REST node: Jersey on Grizzly as server, the JDK's HttpClient as client. */
public final class Node {
    private Node() {}

    public static void main(String[] arguments) throws Exception {
        Cell.run(arguments, Client::ask, Server::answer);
    }
}
